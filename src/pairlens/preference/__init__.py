"""Learning from preferences: which of two rows is better."""
