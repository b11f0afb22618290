"""The way to the models that the local daemon serves: HTTP, and OpenAI's forms."""
