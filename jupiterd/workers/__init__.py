"""What runs in child processes; the only place that may import torch, mlx or transformers."""
