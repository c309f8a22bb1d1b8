"""Learn from preferences (which of two rows is better) and from comparisons of distances."""
