"""One rank on MLX: its model, loss, optimizer and ring."""
