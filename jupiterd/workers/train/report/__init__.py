"""What one rank reports for people: log lines, curves, metrics."""
