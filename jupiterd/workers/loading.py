"""Modules that take seconds to import, all at once.

Owns that nobody looks for garbage meanwhile: libraries make a million objects that live as long as
the process, and looking through them again and again takes a fifth of the time. Doesn't know what
is in the modules.
"""

import gc
import importlib
from collections.abc import Sequence
from types import ModuleType


def load(names: Sequence[str]) -> list[ModuleType]:
    """Import modules; what they have made so far is never looked at for garbage, then or later."""
    gc.disable()
    try:
        return [importlib.import_module(name) for name in names]
    finally:
        gc.freeze()  # in a process that others are forked from, these share its pages for good
        gc.enable()
