"""Methods that learn from pairs: one file for a family, of which each method says which scatters and which problem."""
