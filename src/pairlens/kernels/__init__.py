"""Kernels: features whose inner products are those of a kernel."""
