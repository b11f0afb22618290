"""Models where people find them: a plain folder for each finished round or run, in `runs/`.

Owns these folders; they are hard links into the store, so they cost no room. A folder stays as it
is: where another line of the cycle counts later, its model of the same round gets a name of its
own. Doesn't know what makes a model good, or which line counts.
"""

import os
import shutil
from pathlib import Path

from jupiterd.cluster.ledger.state import CycleState
from jupiterd.ids import ArtifactId, short


class ModelExports:
    """The folders below `runs/`."""

    def __init__(self, runs: Path) -> None:
        self._runs = runs

    def folder(self, cycle: CycleState, round_number: int, model: ArtifactId) -> Path:
        """Return where a round's model lies, or would lie."""
        begun = cycle.begun
        name = "unknown" if begun is None else f"{cycle.label}-{short(begun.cycle)}"
        usual = self._runs / name / ("model" if cycle.training else f"round-{round_number}")
        is_taken = usual.is_dir() and _model_in(usual) != model
        return usual.with_name(f"{usual.name}-{short(model)}") if is_taken else usual

    def export(
        self, cycle: CycleState, round_number: int, model: ArtifactId, artifact: Path
    ) -> Path:
        """Make the folder from the artifact's files, all at once."""
        folder = self.folder(cycle, round_number, model)
        if not folder.exists():
            draft = folder.with_name(folder.name + ".tmp")
            shutil.rmtree(draft, ignore_errors=True)
            shutil.copytree(artifact, draft, copy_function=_link)
            _label(folder).write_text(model)
            draft.rename(folder)
        return folder


def _model_in(folder: Path) -> str:
    """Return whose files an export has; empty where that can't be read: the folder is people's."""
    try:
        return _label(folder).read_text()
    except (OSError, ValueError):
        return ""


def _label(folder: Path) -> Path:
    """Return the path of the file next to an export that names its artifact."""
    return folder.with_name(f"{folder.name}.artifact")


def _link(source: str, target: str) -> None:
    """Link a file, or copy it where the disk knows no links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
