"""The models that one way in gives access to.

Owns which names are known there: those that were listed, or on this machine's own socket all of
them, folders too. What a name means is the catalogue's. Doesn't know HTTP.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.serving.served_model import ServedModel
from jupiterd.daemon.serving.named_models import served_model, served_names
from jupiterd.errors import ModelNotServedError

_FOLDER_BEGINS: Final = ("/", "~")


class KnowsState(Protocol):
    """The ledger's replica."""

    @property
    def state(self) -> State:
        """What is agreed on."""
        ...


class NamesModels(Protocol):
    """What an endpoint asks about names."""

    def model(self, name: str) -> ServedModel:
        """Return the model of that name; raises ModelNotServedError and UsageError."""
        ...

    def names(self) -> list[str]:
        """Return the names that have a model now."""
        ...


class AllNames:
    """Every model, and folders of this machine: for its own user."""

    def __init__(self, replica: KnowsState) -> None:
        self._replica = replica

    def model(self, name: str) -> ServedModel:
        """Return the model of that name, or in that folder; without a name the promoted one."""
        if name.startswith(_FOLDER_BEGINS):
            return _in_folder(name)
        return served_model(self._replica.state, name or "promoted")

    def names(self) -> list[str]:
        """Return the names that have a model now."""
        return served_names(self._replica.state)


class ListedNames:
    """The models that somebody listed, and no others."""

    def __init__(self, replica: KnowsState, listed: Sequence[str]) -> None:
        self._replica, self._listed = replica, tuple(listed)

    def model(self, name: str) -> ServedModel:
        """Return the model of that name; without a name the first that is listed."""
        if name and name not in self._listed:
            known = ", ".join(self._listed)
            raise ModelNotServedError(f"the model {name} isn't served here", f"served are: {known}")
        return served_model(self._replica.state, name or self._listed[0])

    def names(self) -> list[str]:
        """Return those of the list that have a model now."""
        return [name for name in self._listed if self._has(name)]

    def _has(self, name: str) -> bool:
        try:
            served_model(self._replica.state, name)
        except ModelNotServedError:
            return False
        return True


def _in_folder(name: str) -> ServedModel:
    try:
        folder = Path(name).expanduser()
    except RuntimeError:  # there is no such user
        folder = Path(name)
    if not (folder / "config.json").is_file():
        raise ModelNotServedError(
            f"there is no model in {folder}", "a model's folder has config.json and its weights"
        )
    return ServedModel(name, None, str(folder))
