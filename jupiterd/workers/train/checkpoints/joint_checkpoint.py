"""A checkpoint of a model that is cut over ranks: all go through it together, and one writes.

Owns that order. The folder is as any other's (`checkpoint`), so whoever reads it needn't know. No
rank has more of it in memory than a unit at a time.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

from jupiterd.workers.tensor_file import StoredTensors
from jupiterd.workers.tensor_writer import save_each
from jupiterd.workers.train.architectures.folder_weights import names_in_files
from jupiterd.workers.train.checkpoints.checkpoint import (
    BEST_FILE,
    OPTIMIZER_FILE,
    STATE_DIR,
    STATE_FILE,
    TrainingState,
    state_text,
    whole_or_nothing,
    write_texts,
)
from jupiterd.workers.train.checkpoints.checkpoint_format import format_of
from jupiterd.workers.training_engine import NamedTensor, TrainingEngine, moments_of


class JointCheckpoint:
    """One checkpoint, as the rank sees it that writes it, or one that doesn't."""

    def __init__(self, engine: TrainingEngine, tokenizer: Path) -> None:
        self._engine = engine
        self._tokenizer = tokenizer

    def write(
        self, state: TrainingState, folder: Path | None, best: Path | None, *, is_last: bool
    ) -> None:
        """Write the folder, or take part in it where there is none.

        best: the file of the best weights, where they aren't the engine's; is_last: they take the
        place of the engine's

        Raises:
            OSError: it couldn't be written; the other ranks have gone through it all the same.
        """
        with nullcontext() if folder is None else whole_or_nothing(folder) as draft:
            parts = (
                lambda: self._begin(draft),
                lambda: self._each_weight(draft, best if is_last else None),
                lambda: self._each_moment(draft),
            )
            # All of them, whatever becomes of the first: others wait in each.
            failures = [_failure_of(part) for part in parts]
            if failure := next(filter(None, failures), None):
                raise failure
            if draft is None:
                return
            if best is not None and not is_last:
                shutil.copyfile(best, draft / STATE_DIR / BEST_FILE)
            (draft / STATE_DIR / STATE_FILE).write_text(state_text(state), encoding="utf-8")

    def _begin(self, draft: Path | None) -> None:
        """Write all that stands beside weights."""
        if draft is not None:
            write_texts(draft, format_of(self._engine), self._tokenizer)
            (draft / STATE_DIR).mkdir()

    def _each_weight(self, draft: Path | None, instead: Path | None) -> None:
        engine = self._engine
        theirs = names_in_files(engine.config, engine.shapes)
        shapes = {theirs[name]: shape for name, shape in engine.shapes.items()}
        given = engine.each_weight() if instead is None else self._replaced(instead)
        path = None if draft is None else draft / format_of(engine).file
        save_each(((theirs[name], values) for name, values in given), shapes, path)

    def _replaced(self, file: Path) -> Iterator[NamedTensor]:
        """Yield the weights of a file in the place of the engine's."""
        stored = StoredTensors(file)
        for name, _ in self._engine.each_weight():
            yield name, stored[name]

    def _each_moment(self, draft: Path | None) -> None:
        engine = self._engine
        shapes = {
            f"{kind}.{name}": shape
            for name, shape in engine.shapes.items()
            for kind in moments_of(name, len(shape), engine.options)
        }
        path = None if draft is None else draft / STATE_DIR / OPTIMIZER_FILE
        save_each(engine.each_moment(), shapes, path)


def _failure_of(part: Callable[[], None]) -> OSError | None:
    try:
        part()
    except OSError as error:
        return error
    return None
