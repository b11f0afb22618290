"""Values and words that every part of the cycle uses."""
