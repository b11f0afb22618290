"""An adapter's folder as a model that is used: one folder of it and its base together.

Owns finding the base and where that folder lies: in the state folder, by links alone, made anew
where it has changed. Doesn't know who uses it.
"""

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

from blake3 import blake3

from jupiterd.adapter_folder import base_named_in, found_base, holds_adapter, join
from jupiterd.ctl.chat.model_names import BASE, called_beside, model_called
from jupiterd.ctl.hub.names import hub_name
from jupiterd.ctl.sources.adapter_source import (
    adapter_in,
    base_by_id,
    base_of_cluster,
    check_same_base,
    fitted,
    of_cluster,
)
from jupiterd.ctl.sources.model_source import config_of
from jupiterd.errors import NotFoundError, UsageError
from jupiterd.path_text import path_text

_SCRATCH: Final = "scratch"
"""In the state folder; the daemon empties it when it starts."""
_NAME_IT: Final = "--base FOLDER names it"
_CONFIG: Final = "config.json"


def usable_model(text: str, base: str | None, state_dir: Path) -> str:
    """Return the name of a model, or the whole path of a folder: of an adapter one with its base.

    Args:
        text: as people typed it.
        base: the model that an adapter stands beside, a folder or a name; None: it says which.
        state_dir: of the daemon, which knows the cluster's models.

    Raises:
        NotFoundError: there is no such folder, or nobody knows the base.
        UsageError: it is no adapter that can be used, or not beside that model.
    """
    called = model_called(text)
    folder = Path(called)
    if not folder.is_absolute() or not holds_adapter(folder):
        return called
    return path_text(with_base(folder, base, state_dir))


def usable_models(model: str, beside: str, base: str | None, state_dir: Path) -> list[str]:
    """Return what `usable_model` does of a model, and of one that stands beside it, if any does."""
    check_base_is_used([model, beside] if beside else [model], base)
    names = [usable_model(model, base, state_dir)]
    if beside == BASE:
        return [*names, called_beside(beside, names[0])]
    return [*names, usable_model(beside, base, state_dir)] if beside else names


def check_base_is_used(models: list[str], base: str | None) -> None:
    """Raise UsageError where a base is named, and none of these models is an adapter's folder."""
    if base is not None and not any(holds_adapter(Path(model_called(text))) for text in models):
        raise UsageError(
            "--base names what an adapter's folder stands beside, and no such folder is named",
            "leave it out; models of the cluster know theirs",
        )


def with_base(folder: Path, base: str | None, state_dir: Path) -> Path:
    """Return a folder of an adapter and its base; raises as `usable_model`."""
    files = adapter_in(folder, "used")
    beside = _named(base, state_dir) if base is not None else _found(folder, state_dir)
    said = config_of(beside)[1]
    fitted(folder, files, said, path_text(beside), "used")
    check_same_base(folder, beside, path_text(beside), "used")
    return _joined(folder.resolve(), beside.resolve(), state_dir)


def _named(base: str, state_dir: Path) -> Path:
    """Return the folder of a base that people named."""
    called = model_called(base)
    if Path(called).is_absolute() and not (Path(called) / _CONFIG).is_file():
        reason = f"{called} is no model: it has no {_CONFIG}"
        raise NotFoundError(reason, "--base names the folder of a whole model")
    if Path(called).is_absolute():
        return Path(called)
    return Path(of_cluster(called, state_dir))


def _found(folder: Path, state_dir: Path) -> Path:
    """Return the folder of the base that an adapter names."""
    here = base_by_id(folder, state_dir) or found_base(folder) or _on_this_disk(folder)
    return here or Path(base_of_cluster(folder, state_dir, _NAME_IT))


def _on_this_disk(folder: Path) -> Path | None:
    """Return a model of the hub that was fetched before; nothing is fetched."""
    from jupiterd.ctl.hub.snapshot import cached_snapshot

    if (name := hub_name(base_named_in(folder))) is None:
        return None
    with suppress(NotFoundError):
        return cached_snapshot(name, _CONFIG, NotFoundError(f"{name} isn't on this disk", _NAME_IT))
    return None


def _joined(adapter: Path, base: Path, state_dir: Path) -> Path:
    """Return a folder with links to both, the same one for the same two."""
    key = blake3(f"{adapter}\0{base}".encode(errors="surrogateescape")).hexdigest()[:16]
    place = state_dir / _SCRATCH / f"adapter-{key}" / adapter.name
    draft = place.with_name(f".{os.getpid()}")
    try:
        shutil.rmtree(draft, ignore_errors=True)
        join(adapter, base, draft)
        if _links(draft) == _links(place):
            shutil.rmtree(draft)
            return place
        shutil.rmtree(place, ignore_errors=True)
        return draft.rename(place)
    except OSError as error:
        reason = f"the adapter can't be put beside its base: {error.strerror or error}"
        raise UsageError(reason, f"{path_text(place.parent)} must be yours to write") from error


def _links(folder: Path) -> dict[str, str]:
    if not folder.is_dir():
        return {}
    return {path.name: str(path.readlink()) for path in folder.iterdir() if path.is_symlink()}
