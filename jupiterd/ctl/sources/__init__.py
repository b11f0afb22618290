"""The models, text and domains that a command line names, turned into a command's fields."""
