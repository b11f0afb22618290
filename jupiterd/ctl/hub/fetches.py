"""The models that a command has to download from the hub, after the daemon has checked the command.

Owns the order of the steps: check the free space, download the files, check the models. Doesn't
know what the models are for, or how a file is downloaded.
"""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from jupiterd.ctl.hub.download import download
from jupiterd.ctl.hub.fetch_progress import FetchProgress
from jupiterd.ctl.hub.listing import HubFile
from jupiterd.ctl.hub.model import HubModel
from jupiterd.errors import DiskFullError
from jupiterd.formats import size

SPARE_BYTES: Final = 1 << 30
"""Bytes that must stay free on each disk, for the checkpoints of a later training."""

SMALL_BYTES: Final = 1 << 20
"""The size limit of files that `add` downloads at once: a plan needs the small ones."""

Look = Callable[[Path], None]
"""Checks the folder of a model; raises a JupiterError if the model can't be used."""


@dataclass(frozen=True)
class Fetches:
    """The models of one command that aren't complete on this machine; empty at first, see `add`."""

    _pending: list[tuple[HubModel, Look]] = field(default_factory=list[tuple[HubModel, Look]])

    def add(self, model: HubModel, look: Look) -> None:
        """Download a model's small files; note it for the rest, or check it if it is complete."""
        _bring(model, [file for file in model.missing_words if file.size <= SMALL_BYTES])
        if model.missing:
            self._pending.append((model, look))
        else:
            look(model.folder)

    def check(self, folder: Path, look: Look) -> None:
        """Check a model's folder, which may be none that is fetched: now, or once it is whole."""
        for number, (model, first) in enumerate(self._pending):
            if model.folder == folder:
                self._pending[number] = (model, partial(_both, first, look))
                return
        look(folder)

    def __bool__(self) -> bool:
        """Return whether anything is still to be fetched."""
        return bool(self._pending)

    @property
    def folders(self) -> list[str]:
        """Return the folders that will hold the models."""
        return [str(model.folder) for model, _ in self._pending]

    @property
    def missing_bytes(self) -> int:
        """Return how many bytes are still to be fetched."""
        return sum(model.missing_bytes for model, _ in self._pending)

    def names(self, folder: Path) -> list[str]:
        """Return the names of the files that a folder will hold after the download, sorted."""
        here = [path.name for path in folder.iterdir()]
        will = (file.name for model, _ in self._pending if model.folder == folder
                for file in model.wanted)  # fmt: skip
        return sorted({*here, *will})

    def lines(self) -> list[str]:
        """Return lines for people about the files to fetch."""
        return [
            f"would fetch {size(model.missing_bytes)} of {model.listing.name} "
            f"(commit {model.listing.commit[:8]}) from the hub first"
            for model, _ in self._pending
        ]

    def bring_tokenizers(self) -> bool:
        """Download the missing files that aren't weights; return whether there were any.

        Raises:
            JupiterError: see `run`.
        """
        lacking = [model for model, _ in self._pending if model.missing_words]
        for model in lacking:
            _bring(model, model.missing_words)
        return bool(lacking)

    def check_room(self, state_dir: Path) -> None:
        """Raise DiskFullError if a disk has too little room for the cache and the daemon's copy.

        Args:
            state_dir: the daemon's state folder, which gets a copy of each model.
        """
        takes: dict[int, int] = {}
        places: dict[int, Path] = {}
        for model, _ in self._pending:
            whole = sum(file.size for file in model.wanted)
            for place, count in ((model.folder, model.missing_bytes), (state_dir, whole)):
                device = place.stat().st_dev
                takes[device] = takes.get(device, 0) + count
                places.setdefault(device, place)
        for device, count in takes.items():
            _check_disk(places[device], count, [str(m.listing.name) for m, _ in self._pending])

    def run(self, progress: FetchProgress) -> None:
        """Download all the models, and check each.

        Raises:
            CorruptArtifactError: a file's hash isn't the hub's.
            JupiterError: the hub can't be reached any more, or a model can't be used.
        """
        for model, look in self._pending:
            with progress.of(model) as model_progress:
                for file in model.missing:
                    download(model.listing, file, model.folder, model_progress.of(file))
            look(model.folder)


def _both(first: Look, second: Look, folder: Path) -> None:
    first(folder)
    second(folder)


def _bring(model: HubModel, files: Sequence[HubFile]) -> None:
    for file in files:
        download(model.listing, file, model.folder, lambda _: None)


def _check_disk(place: Path, takes: int, names: Sequence[str]) -> None:
    free = shutil.disk_usage(place).free
    if free >= takes + SPARE_BYTES:
        return
    raise DiskFullError(
        f"there is no room for {', '.join(names)}: the cache and the daemon's copy take "
        f"{size(takes)} of the disk of {place}, and {size(free)} are free",
        f"free some space, and leave {size(SPARE_BYTES)} of it; HF_HOME=DIR names another cache",
    )
