"""Where an engine that answers for models finds the key that whoever asks it must have.

Owns the variable's name, which the daemon sets and our launchers of engines read.
"""

from typing import Final

KEY_VARIABLE: Final = "JUPITER_ENGINE_KEY"
