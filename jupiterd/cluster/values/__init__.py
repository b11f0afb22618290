"""Values that nodes tell each other of themselves: pure, and known to all above."""
