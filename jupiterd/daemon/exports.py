"""Models where people find them: a plain folder for each finished round, in `runs/`.

Owns these folders; they are hard links into the store, so they cost no room. Doesn't know what
makes a model good.
"""

import os
import shutil
from pathlib import Path

from jupiterd.cluster.state import CycleState
from jupiterd.ids import short


class Exports:
    """The folders below `runs/`."""

    def __init__(self, runs: Path) -> None:
        self._runs = runs

    def folder(self, cycle: CycleState, round_number: int) -> Path:
        """Return where the model of a round lies, or would lie."""
        started = cycle.started
        name = "unknown" if started is None else f"{started.domain}-{short(started.cycle)}"
        return self._runs / name / f"round-{round_number}"

    def export(self, cycle: CycleState, round_number: int, artifact: Path) -> Path:
        """Make the folder from the artifact's files, all at once."""
        folder = self.folder(cycle, round_number)
        if not folder.exists():
            draft = folder.with_name(folder.name + ".tmp")
            shutil.rmtree(draft, ignore_errors=True)
            shutil.copytree(artifact, draft, copy_function=_link)
            draft.rename(folder)
        return folder


def _link(source: str, target: str) -> None:
    """Link a file, or copy it where the disk knows no links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
