"""`jupiterctl launch`: runs scripts that were written for torchrun or MLX, unchanged."""
