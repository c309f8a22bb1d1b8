"""Rows in the chunks of a dask array, which are never brought to one place."""
