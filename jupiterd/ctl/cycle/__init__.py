"""`jupiterctl cycle` and `jupiterctl gate`: cycles and their verdicts."""
