"""Checks of what may be wrong with a machine; each check reads the facts, then judges them."""
