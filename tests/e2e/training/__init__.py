"""Gangs of real daemons: training that goes on whatever goes."""
