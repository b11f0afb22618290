"""A page about one cycle, as one file that needs nothing else."""
