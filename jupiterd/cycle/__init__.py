"""The self-improving cycle as pure values and decisions: no clock, socket, file or randomness."""
