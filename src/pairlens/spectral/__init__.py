"""Scatters and eigenproblems: from pair graphs to directions."""
