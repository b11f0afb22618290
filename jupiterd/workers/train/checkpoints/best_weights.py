"""The weights with the lowest loss on held-out text so far, while training goes on beyond them.

Owns the files that they lie in. Doesn't know losses: it is told after which step the best are. One
process of each machine writes them; they go into each checkpoint that isn't the best itself, so
that whoever goes on from it has them too.
"""

from pathlib import Path

from safetensors import SafetensorError

from jupiterd.workers.disk_room import is_out_of_room
from jupiterd.workers.tensor_writer import save_each
from jupiterd.workers.train.checkpoints.checkpoint import best_of
from jupiterd.workers.training_engine import TrainingEngine

NEWEST = 2
"""Files that stay: one may be read while the next is written."""


class BestWeights:
    """Those of one rank, by the step after which they were there.

    0: as they were given; None for a step: it isn't known which are the best.
    """

    def __init__(self, folder: Path, *, writes: bool) -> None:
        """Take the folder to write in; is_kept: no where another process here does so."""
        self._folder = folder
        self._writes = writes
        self._files: dict[int, Path] = {}

    def go_on(self, best_step: int | None, from_step: int, checkpoint: Path | None) -> None:
        """Take up the best at a checkpoint: its own weights, or those that it was given."""
        found = None if checkpoint is None else best_of(checkpoint, is_own=best_step == from_step)
        if best_step is not None and found is not None:
            self._files[best_step] = self._linked(found, best_step)

    def take(self, step: int, engine: TrainingEngine, best_step: int = 0) -> None:
        """Write down the weights as they are after a step, where the disk has room for them.

        Where no rank holds all of them, every one goes through them.

        best_step: whose weights stay in any case
        """
        if engine.partition is None and not self._writes:
            return
        if not self._is_written(step, engine):
            return
        self._files[step] = self._folder / _name(step)
        for old in {*sorted(self._files)[:-NEWEST]} - {best_step}:
            gone = self._files.pop(old)
            if gone.parent == self._folder:
                gone.unlink(missing_ok=True)

    def _is_written(self, step: int, engine: TrainingEngine) -> bool:
        file = self._folder / _name(step)
        try:
            self._folder.mkdir(exist_ok=True)
            save_each(engine.each_weight(), engine.shapes, file if self._writes else None)
        except (OSError, SafetensorError) as error:
            if not is_out_of_room(error):
                raise
            file.unlink(missing_ok=True)
            message = f"no room for the best weights, of step {step}"
            print(message, flush=True)  # noqa: T201 - our log
            return False
        return self._writes

    def _linked(self, file: Path, step: int) -> Path:
        """Return a link of our own, where one can be made: the checkpoint may be deleted."""
        link = self._folder / _name(step)
        try:
            self._folder.mkdir(exist_ok=True)
            link.hardlink_to(file)
        except OSError:
            return file
        return link

    def file(self, best_step: int | None, step: int) -> Path | None:
        """Return where the best lie, where they aren't those of `step`, and are here."""
        return None if best_step in {None, step} else self._files.get(best_step or 0)

    def lacks(self, best_step: int | None, step: int) -> bool:
        """Say whether a state of `step` can't be written down with the best beside it."""
        return best_step not in {None, step} and best_step not in self._files


def _name(step: int) -> str:
    return f"best-{step:08}.safetensors"
