"""Which model `model eval` is about: its folder on this machine, and an id of its content.

Owns asking the daemon for the files, and the id of a folder that no store has. Doesn't know what
the model is asked.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jupiterd.adapter_folder import base_beside, no_model
from jupiterd.ctl.chat.model_names import BASE, CONFIG, model_called
from jupiterd.errors import NotFoundError
from jupiterd.path_text import path_text

FETCHING_S: Final = 3600.0
"""Seconds to wait for files from other nodes."""


@dataclass(frozen=True)
class EvaluatedModel:
    """A model whose files lie on this machine."""

    name: str
    """What people call it; of a folder the last part of its path."""
    artifact: str
    """Its id in the stores; empty where it is a folder of this machine."""
    folder: Path

    @property
    def content(self) -> str:
        """Return an id that changes where any of its files does."""
        return self.artifact or _content_of(self.folder)


def evaluated_model(state_dir: Path, text: str) -> EvaluatedModel:
    """Return the model that is called so, its files fetched where they aren't here.

    Raises:
        NotFoundError: there is no such model or folder, or nobody in reach has it.
        DaemonUnreachableError: no daemon answers.
    """
    from jupiterd.ctl.calls import ask_over_grpc

    name = model_called(text)
    if Path(name).is_absolute():
        folder = Path(name)
        why, hint = no_model(folder)
        if why:
            raise NotFoundError(why, hint)
        if not (folder / CONFIG).is_file():
            raise NotFoundError(
                f"{path_text(folder)} has no {CONFIG}", "name the folder of a model's files"
            )
        return EvaluatedModel(folder.name, "", folder)
    found = ask_over_grpc(state_dir, f"model_files/{name}", FETCHING_S)["model"]
    return EvaluatedModel(_called(name, found["name"]), str(found["id"]), Path(found["files_at"]))


def _called(asked: str, known: object) -> str:
    """Return what people wrote, with the name that it stands for."""
    if asked.endswith(f"/{BASE}"):
        return BASE if asked == known else f"{BASE} ({known})"
    return asked if asked == known else f"{asked} ({known})"


def _content_of(folder: Path) -> str:
    from blake3 import blake3

    digest = blake3()
    beside = base_beside(folder)  # under an adapter
    folders = [folder] if beside is None else [folder, beside]
    for file in sorted(path for each in folders for path in each.iterdir() if path.is_file()):
        digest.update(f"{file.name}\0{file.stat().st_size}\0".encode())
        digest.update_mmap(file)
    return digest.hexdigest()
