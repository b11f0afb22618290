"""A look at sources before anything is spent."""
