"""How many tokens a device takes at a time: a default, a search, what was found before."""
