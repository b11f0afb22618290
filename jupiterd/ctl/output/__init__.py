"""The output of jupiterctl: the console, and documents as lines and tables."""
