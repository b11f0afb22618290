"""Whole cycles on real daemons: run, answered, paused, struck, gone on with."""
