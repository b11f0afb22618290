"""The composition root: a daemon put together, started and shut down."""
