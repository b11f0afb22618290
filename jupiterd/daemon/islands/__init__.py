"""Outer rounds of several gangs, as the leader carries them out."""
