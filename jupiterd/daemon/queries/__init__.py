"""Documents that front ends ask for: they read what is agreed on, and record nothing."""
