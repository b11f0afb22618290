"""Documents as lines of text, the same for jupiterctl and the dashboard."""
