"""What islands of machines decide together, from one outer step to the next."""
