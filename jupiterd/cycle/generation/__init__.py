"""How text is generated: how a server is asked, and how many requests are under way at once."""
