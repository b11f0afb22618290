"""What models were found to score, so that nothing is computed twice on this machine.

Owns files in the state folder, one for a model and a task, by the hash of both; only their owner
reads them. It is only a help: what can't be read or written is computed.
"""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from blake3 import blake3

from jupiterd.cycle.questions.task_scores import TaskScore, read_task_scores, score_lines
from jupiterd.errors import CorruptArtifactError

FOLDER: Final = "evaluations"
MOST_FILES: Final = 2000
"""Kilobytes each; with more the oldest are thrown away."""


class EvaluationCache:
    """The scores that this machine keeps."""

    def __init__(self, state_dir: Path) -> None:
        """Keep them there; where no daemon has a folder yet nothing is kept."""
        self._folder = state_dir / FOLDER if state_dir.is_dir() else None

    def found(self, model: str, task: str) -> list[TaskScore] | None:
        """Return what a model scored in a task; None where that isn't known."""
        with suppress(CorruptArtifactError):
            if (text := self.found_text(model, task)) is not None:
                return read_task_scores(text)
        return None

    def found_text(self, model: str, task: str) -> str | None:
        """Return the text that is kept of a model and a task; None where there is none."""
        with suppress(OSError, UnicodeDecodeError):
            if self._folder is not None:
                return self._file(self._folder, model, task).read_text("utf-8")
        return None

    def keep(self, model: str, task: str, scores: Sequence[TaskScore]) -> None:
        """Keep what a model scored in a task."""
        self.keep_text(model, task, score_lines(scores))

    def keep_text(self, model: str, task: str, text: str) -> None:
        """Keep a text of a model and a task."""
        if self._folder is None:
            return
        with suppress(OSError):
            self._folder.mkdir(exist_ok=True, mode=0o700)
            file = self._file(self._folder, model, task)
            draft = file.with_suffix(".tmp")
            draft.write_text(text, encoding="utf-8", newline="")
            draft.replace(file)
            _cut(self._folder)

    @staticmethod
    def _file(folder: Path, model: str, task: str) -> Path:
        return folder / f"{blake3(f'{model} {task}'.encode()).hexdigest()}.jsonl"


def _cut(folder: Path) -> None:
    files = sorted(folder.glob("*.jsonl"), key=lambda file: file.stat().st_mtime)
    for old in files[:-MOST_FILES]:
        old.unlink()
