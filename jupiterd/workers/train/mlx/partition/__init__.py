"""A model on MLX that is cut over the ranks of a ring."""
