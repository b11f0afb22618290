"""The models that one way in gives access to.

Owns which names are known there: those that were listed, or on this machine's own socket all of
them, folders too. What a name means is the catalogue's. Doesn't know HTTP.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Protocol

from jupiterd.adapter_folder import no_model
from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.serving.served_model import ServedModel
from jupiterd.cycle.base.model_files import may_have_tokenizer
from jupiterd.daemon.serving.named_models import served_model, served_names
from jupiterd.errors import JupiterError, ModelNotServedError

_FOLDER_BEGINS: Final = ("/", "~")
_TOKENIZER: Final = "tokenizer"
_BRING_TOKENIZER: Final = (
    "copy tokenizer.json and tokenizer_config.json into it, from the model that it was made from"
)
_WHAT_IT_HAS: Final = (
    "a model's folder has config.json, its tokenizer and its weights as safetensors"
)


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
    """The models that somebody listed, and no others; a folder is called by its last part."""

    def __init__(self, replica: KnowsState, listed: Sequence[str]) -> None:
        self._all = AllNames(replica)
        self._meant = {_called(name): name for name in listed}

    @property
    def listed(self) -> list[str]:
        """Return what clients call them, whether there is a model now or not."""
        return [*self._meant]

    def model(self, name: str) -> ServedModel:
        """Return the model of that name; without a name the first that is listed."""
        called = name or next(iter(self._meant))
        if called not in self._meant:
            known = ", ".join(self._meant)
            raise ModelNotServedError(f"the model {name} isn't served here", f"served are: {known}")
        return replace(self._all.model(self._meant[called]), name=called)

    def names(self) -> list[str]:
        """Return those of the list that have a model now."""
        return [name for name in self._meant if self._has(name)]

    def _has(self, name: str) -> bool:
        try:
            self.model(name)
        except JupiterError:  # it can also be the beginning of several ids
            return False
        return True


def _called(listed: str) -> str:
    return Path(listed).name if listed.startswith(_FOLDER_BEGINS) else listed


def _in_folder(name: str) -> ServedModel:
    try:
        folder = Path(name).expanduser()
    except RuntimeError:  # there is no such user
        folder = Path(name)
    why, hint = _no_model(folder)
    if why:
        raise ModelNotServedError(why, hint)
    if lacks := _lacking(folder):
        hint = _BRING_TOKENIZER if lacks == _TOKENIZER else _WHAT_IT_HAS
        raise ModelNotServedError(f"there is no model in {folder}: it has no {lacks}", hint)
    return ServedModel(name, None, str(folder))


def _no_model(folder: Path) -> tuple[str, str]:
    try:
        return no_model(folder)
    except OSError:  # as below
        return "", ""


def _lacking(folder: Path) -> str:
    try:
        if not (folder / "config.json").is_file():
            return "config.json"
        names = [path.name for path in folder.iterdir()]
        if not any(name.endswith(".safetensors") for name in names):
            return "weights as safetensors"
        return "" if may_have_tokenizer(names) else _TOKENIZER
    except OSError:  # such as a name that is too long, or a folder that others have closed
        return "file that can be read"
