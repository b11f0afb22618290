"""`jupiterctl launch`: scripts that were written for torchrun or MLX, as they are."""
