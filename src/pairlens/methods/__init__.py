"""One file for a method or two from one paper: which scatters attract and repel, which eigenproblem."""
