"""`jupiterctl status`, `check`, `doctor`, `events`, `logs`, `monitor` and `dismiss`."""
