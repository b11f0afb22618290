"""Following work, and waiting until what was ordered has come to pass."""
