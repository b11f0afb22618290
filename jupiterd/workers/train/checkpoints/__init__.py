"""What one rank saves: checkpoints, the last step, the best weights."""
