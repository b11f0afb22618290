"""jupiterctl: the command line, with a folder or module for each noun."""
