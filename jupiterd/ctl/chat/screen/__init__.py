"""How answers are shown: as they are written, alone or beside each other."""
