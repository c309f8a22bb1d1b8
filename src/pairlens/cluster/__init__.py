"""Clusterings that respect what is known about pairs."""
