"""Text and servers that cycles of tests read from and write with."""
