"""What a user calls a model, as the daemon knows it.

Owns telling a folder of this machine from a name. Doesn't know which models there are.
"""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from jupiterd.adapter_folder import ADAPTER_CONFIG, base_beside
from jupiterd.errors import NotFoundError, UsageError
from jupiterd.path_text import path_of, path_text

PROMOTED = "promoted"
"""The promoted model of the newest cycle that has one."""

BASE = "base"
"""What the promoted model's cycle began with; MODEL/base is what that model's did."""

CONFIG = "config.json"


def model_called(text: str) -> str:
    """Return the name, or the whole path of a folder: the daemon works in another one.

    Either is valid UTF-8, whatever was typed.

    A text is a folder if it begins as paths do, or has a model's or an adapter's configuration in
    it.

    Raises:
        NotFoundError: it is a path, and there is no such folder.
    """
    is_path = _is_path(text)
    folder = path_of(text) if is_path else Path(text)
    known = (folder / name for name in (CONFIG, ADAPTER_CONFIG))
    if not is_path and not any(_is_so(path.is_file) for path in known):
        return path_text(text)
    if not _is_so(folder.is_dir):
        raise NotFoundError(
            f"there is no folder {path_text(folder)}", "jupiterctl model list shows every model"
        )
    return path_text(folder.resolve())


def stored_model_called(text: str, command: str) -> str:
    """Return the name of a model of the cluster, for a command that takes no folder.

    Raises:
        UsageError: it is a path.
    """
    if _is_path(text):
        raise UsageError(
            f"{command} takes a model of the cluster, and {path_text(path_of(text))} is a folder",
            "jupiterctl model list shows every model; model chat, eval and serve take folders, too",
        )
    return path_text(text)


def called_beside(text: str, model: str) -> str:
    """Return the name of a model that stands beside another; `base` is that one's own.

    text: as it was typed
    model: the other one, as `model_called` returns it

    Raises:
        NotFoundError: as `model_called`.
    """
    if text == BASE and Path(model).is_absolute() and (folder := base_beside(Path(model))):
        return path_text(folder)
    has_own_base = model not in {PROMOTED, BASE} and not Path(model).is_absolute()
    return f"{model}/{BASE}" if text == BASE and has_own_base else model_called(text)


def _is_path(text: str) -> bool:
    return text.startswith(("/", "./", "../", "~")) or text in {".", ".."}


def _is_so(look: Callable[[], bool]) -> bool:
    """Look at a path; one that is too long, or that nobody may look at, is no such thing."""
    with suppress(OSError):
        return look()
    return False
