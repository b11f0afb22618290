"""The screens, one in each module: their panels, where those stand, and what they listen to."""
