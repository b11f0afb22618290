"""Which architectures both engines compute alike: tiny random models, torch against MLX."""
