"""Rows in a torch tensor, on whatever device it is."""
