"""The phases of a round: a module for the items of each, and `table`, which names the next."""
