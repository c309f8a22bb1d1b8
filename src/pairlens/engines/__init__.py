"""The few operations that touch all n rows, blocked and never of size n x n."""
