"""How sound the self-improving cycle is, and how fast."""
