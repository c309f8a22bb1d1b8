"""The measurements that are themselves programs."""
