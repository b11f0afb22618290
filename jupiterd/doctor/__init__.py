"""What may be wrong with a machine, looked at one thing at a time: a check reads, then judges."""
