"""Having models answer: the same prompts, to be read side by side, and people's own questions."""
