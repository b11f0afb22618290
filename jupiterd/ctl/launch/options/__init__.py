"""The options of `jupiterctl launch`, as click decorators."""
