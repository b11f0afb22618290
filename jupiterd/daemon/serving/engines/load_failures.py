"""A short memory of models that no engine could load.

Owns it: whoever asks for such a model again within half a minute hears the same at once, and no
engine is started for each request in vain. A model whose files change has another key. Doesn't
know engines, nor why one fails.
"""

import logging
from typing import Final

from jupiterd.daemon.runtime.clock import now_s
from jupiterd.daemon.serving.engines.model_files import ModelFiles
from jupiterd.errors import JupiterError, from_wire

log = logging.getLogger(__name__)

KEPT_S: Final = 30.0


class LoadFailures:
    """Why models couldn't be loaded just now."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[float, JupiterError]] = {}

    def note(self, model: ModelFiles, error: JupiterError) -> None:
        """Take note of a model that couldn't be loaded, and tell the log."""
        at_s = now_s()
        fresh = {key: each for key, each in self._found.items() if at_s < each[0]}
        self._found = {**fresh, model.key: (at_s + KEPT_S, error)}
        extra = {"model": model.name, "reason": error.message}
        log.warning("model_not_loaded", extra=extra)

    def check(self, key: str) -> None:
        """Raise the error of a model that couldn't be loaded just now."""
        until_s, error = self._found.get(key, (0.0, None))
        if error is not None and now_s() < until_s:
            raise from_wire(error.code, error.message, error.hint)

    def forget(self, key: str) -> None:
        """Let a model be tried again: somebody says that it is to be loaded."""
        self._found.pop(key, None)
