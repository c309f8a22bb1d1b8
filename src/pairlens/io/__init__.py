"""Read and write files: tables, models that hold data and nothing else, linear models for other programs."""
