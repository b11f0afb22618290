"""Cutting a model's weights, gradients and optimizer state over the ranks of a gang."""
