"""Other people's architectures: their parameters' names, their files, mlx-lm's modules of them."""
