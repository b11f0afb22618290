"""Having the models of a round answer the same prompts, for people to read side by side."""
