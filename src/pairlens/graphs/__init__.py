"""Who is near and who is far: edges of nearest rows, their weights, and matrices of them."""
