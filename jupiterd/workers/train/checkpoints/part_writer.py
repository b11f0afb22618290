"""This rank's part of a checkpoint, where no rank holds all of the model.

Owns what goes into it: each rank's own stretches, and with the first one whatever there is once.
Together they are the folder that a rank that holds everything writes (`checkpoint`), to the last
byte. No rank waits for another, and none has more in memory than it trains with.
"""

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Protocol

import numpy as np

from jupiterd.protocol.checkpoint_part import (
    DATA_FILE,
    DESCRIPTION_FILE,
    FILES_DIR,
    CheckpointPart,
    Extent,
)
from jupiterd.workers.tensor_file import StoredTensors, file_head
from jupiterd.workers.tensor_writer import save_each
from jupiterd.workers.train.architectures.folder_weights import names_in_files
from jupiterd.workers.train.checkpoints.checkpoint import (
    BEST_FILE,
    OPTIMIZER_FILE,
    OUTER_FILE,
    STATE_DIR,
    STATE_FILE,
    TrainingState,
    state_text,
    whole_or_nothing,
    write_texts,
)
from jupiterd.workers.train.checkpoints.checkpoint_format import format_of
from jupiterd.workers.training_engine import TensorPiece, TrainingEngine, moments_of

MOMENTS = f"{STATE_DIR}/{OPTIMIZER_FILE}"
"""Path in the checkpoint."""
OUTER = f"{STATE_DIR}/{OUTER_FILE}"
"""The same of what an island's outer loop keeps."""


class OuterPieces(Protocol):
    """What an island's outer loop keeps, of which each rank has its stretches."""

    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Return the shapes of its tensors, whole, as KIND.NAME."""
        ...

    def pieces(self) -> Iterator[TensorPiece]:
        """Yield what this rank holds of them."""
        ...


class PartWriter:
    """Writes the parts of one rank."""

    def __init__(self, engine: TrainingEngine, tokenizer: Path) -> None:
        self._engine = engine
        self._tokenizer = tokenizer
        self._theirs = names_in_files(engine.config, engine.shapes)
        self._weights = format_of(engine).file
        """Path in the checkpoint."""
        self._heads, self._places = self._layout()

    def write(
        self,
        state: TrainingState,
        folder: Path,
        best: Path | None,
        outer: OuterPieces | None = None,
        *,
        takes_over: bool,
    ) -> None:
        """Write the part's folder, or nothing where that fails.

        It isn't synced: whoever takes it in syncs it to the disk.

        best: the file of the best weights so far, where they aren't those of the step; the first
        rank's counts
        outer: of an island: what its outer loop keeps
        takes_over: training is over, and they take the place of the step's; all ranks say the same

        Raises:
            OSError: it couldn't be written.
        """
        with whole_or_nothing(folder, is_synced=False) as draft:
            draft.mkdir()
            if self._engine.rank == 0:
                self._add_files(draft / FILES_DIR, state, best, takes_over=takes_over)
            with (draft / DATA_FILE).open("wb") as data:
                extents = [*self._written(data, leaves_out_weights=takes_over)]
                if outer is not None:
                    extents += self._outer_written(data, outer)
            name = f"rank {self._engine.rank} of step {state.step}, round {state.round}"
            text = CheckpointPart(extents, name).to_text()
            (draft / DESCRIPTION_FILE).write_text(text, encoding="utf-8")

    def _layout(self) -> tuple[Mapping[str, bytes], Mapping[str, tuple[str, int]]]:
        """Return the head of each file of tensors, and each tensor's file and offset there."""
        shapes = self._engine.shapes
        moments = {
            f"{kind}.{name}": shape
            for name, shape in shapes.items()
            for kind in moments_of(name, len(shape), self._engine.options)
        }
        renamed = {self._theirs[name]: shape for name, shape in shapes.items()}
        weights_head, weights_at = file_head(renamed)
        moments_head, moments_at = file_head(moments)
        places = {name: (self._weights, weights_at[self._theirs[name]]) for name in shapes}
        places |= {name: (MOMENTS, moments_at[name]) for name in moments}
        return {self._weights: weights_head, MOMENTS: moments_head}, places

    def _written(self, data: BinaryIO, *, leaves_out_weights: bool) -> Iterator[Extent]:
        """Yield where the bytes go that are written."""
        left_out = {self._weights} if leaves_out_weights else set[str]()
        if self._engine.rank == 0:
            for file, head in self._heads.items():
                if file not in left_out:
                    data.write(head)
                    yield Extent(file, 0, len(head))
        for name, start, values in self._engine.own_pieces():
            file, offset = self._places[name]
            if file not in left_out:
                data.write(np.ascontiguousarray(values, "<f4").data)
                yield Extent(file, offset + 4 * start, 4 * len(values))

    def _outer_written(self, data: BinaryIO, outer: OuterPieces) -> Iterator[Extent]:
        """Yield where the bytes go that are written of an island."""
        head, places = file_head(outer.shapes())
        if self._engine.rank == 0:
            data.write(head)
            yield Extent(OUTER, 0, len(head))
        for name, start, values in outer.pieces():
            data.write(np.ascontiguousarray(values, "<f4").data)
            yield Extent(OUTER, places[name] + 4 * start, 4 * len(values))

    def _add_files(
        self, folder: Path, state: TrainingState, best: Path | None, *, takes_over: bool
    ) -> None:
        """Write what there is once."""
        write_texts(folder, format_of(self._engine), self._tokenizer)
        (folder / STATE_DIR).mkdir()
        (folder / STATE_DIR / STATE_FILE).write_text(state_text(state), encoding="utf-8")
        if best is not None and takes_over:
            self._add_best(best, folder / self._weights)
        elif best is not None:
            shutil.copyfile(best, folder / STATE_DIR / BEST_FILE)

    def _add_best(self, best: Path, to: Path) -> None:
        """Write the best weights under the names that files have for them."""
        stored = StoredTensors(best)
        shapes = {self._theirs[name]: shape for name, shape in self._engine.shapes.items()}
        save_each(((self._theirs[name], stored[name]) for name in self._engine.shapes), shapes, to)
