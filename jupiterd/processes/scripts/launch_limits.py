"""Bounds of a launch's options.

Owns the numbers. Doesn't know who checks them.
"""

from typing import Final

MAX_CUT_TIMEOUT_S: Final = 24 * 3600
MAX_RESTARTS: Final = 10_000
