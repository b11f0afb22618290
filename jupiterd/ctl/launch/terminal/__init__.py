"""The output of ranks, drawn on a terminal."""
