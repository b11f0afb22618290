"""What drawings are made of: lines, columns, plots."""
