"""`jupiterctl model serve`: models answer on a port, as OpenAI's API has it."""
