"""Rows that are NumPy arrays or CSR matrices in the memory of this process."""
