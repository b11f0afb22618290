"""jupiterctl, one file for each noun."""
