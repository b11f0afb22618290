"""One training run: its settings, its plan and its phases."""
