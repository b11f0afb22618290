"""Answers of models: an endpoint as OpenAI's, a router to nodes, and engines in child processes."""
