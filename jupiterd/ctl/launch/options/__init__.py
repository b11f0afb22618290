"""What the command line of `jupiterctl launch` takes: decorators of click."""
