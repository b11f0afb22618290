"""What a run leaves for people who look at curves: JSON lines, and TensorBoard's event files.

Owns both files and the names in them. Doesn't know where the numbers come from. A run that goes on
from an earlier step takes back what it had written beyond it.
"""

import json
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import psutil

from jupiterd.memory_limits import memory_percent
from jupiterd.workers.train.report.tensorboard import EventFileWriter

JSONL_FILE = "metrics.jsonl"
BOARD = "TensorBoard's files"
MACHINE = "readings of this machine"

MAX_BYTES = 64 << 20
"""Of one file of lines; some hundred thousand steps."""

SYSTEM_INTERVAL_S = 1.0
"""Processor and memory are read no more often than this."""

_MIB = 1 << 20

TAGS = {
    "loss": "Loss/train_step",
    "train_loss": "Loss/train_epoch",
    "val_loss": "Loss/val_epoch",
    "epoch_seconds": "Time/epoch_seconds",
    "cpu_percent": "System/CPU_percent",
    "ram_percent": "System/RAM_percent",
    "gpu_vram_mb": "System/GPU_VRAM_MB",
    "tokens_per_s": "Perf/tok_per_sec",
    "mfu": "Perf/MFU",
    "grad_norm": "Train/grad_norm",
    "lr": "Train/lr",
}
"""Name in the JSON lines -> TensorBoard's tag."""


@dataclass(frozen=True)
class Round:
    """What the lines say of the round that they are of, beside the readings."""

    number: int = 1
    step_tokens: int = 0
    """Tokens of one step, over all ranks of all islands; 0: nobody knows."""


class RunMetrics:
    """The files of one run in one folder; written by rank 0 alone.

    Either may fail, at the start or later, without the other: no curve is worth a step of training.
    """

    def __init__(self, folder: Path, from_step: int, of: Round | None = None) -> None:
        self._path = folder / JSONL_FILE
        self._round = of or Round()
        self._reported: set[str] = set()
        self._lines: TextIO | None = None
        self._board: EventFileWriter | None = None
        self._system_read_s = float("-inf")
        with self._in_spite_of_all(JSONL_FILE):
            folder.mkdir(parents=True, exist_ok=True)
            for path in (older_part(self._path), self._path):
                _take_back(path, from_step)
            self._lines = self._path.open("a", encoding="utf-8")
        with self._in_spite_of_all(BOARD):
            self._board = EventFileWriter(folder, from_step + 1)

    def close(self) -> None:
        """Write what is left, as far as there is room for it."""
        with suppress(OSError):
            if self._lines is not None:
                self._lines.close()
        with suppress(OSError):
            if self._board is not None:
                self._board.close()

    def write(self, step: int, readings: Mapping[str, float | None], vram_bytes: int = 0) -> None:
        """Write the readings that there are at the end of a step, where there is room for them."""
        known = {name: value for name, value in readings.items() if value is not None}
        with self._in_spite_of_all(MACHINE):
            known |= self._system(vram_bytes)
        if self._lines is not None:
            with self._in_spite_of_all(JSONL_FILE):
                self._lines.write(json.dumps({**self._when(step), **known}) + "\n")
                self._lines.flush()
                self._turn_over(self._lines)
        if self._board is not None:
            self._write_board(self._board, step, known)

    def _write_board(self, board: EventFileWriter, step: int, known: Mapping[str, float]) -> None:
        """Write curves; none any more once that failed: behind half a record nobody reads."""
        with self._in_spite_of_all(BOARD):
            board.write(step, {TAGS.get(name, name): value for name, value in known.items()})
            return
        self._board = None
        with suppress(OSError):
            board.close()

    def _turn_over(self, lines: TextIO) -> None:
        """Begin a new file where this one is large; the part before it stays beside it."""
        if lines.tell() >= MAX_BYTES:
            lines.close()
            self._lines = None
            self._path.replace(older_part(self._path))
            self._lines = self._path.open("a", encoding="utf-8")

    @contextmanager
    def _in_spite_of_all(self, what: str) -> Generator[None]:
        """Go on where a file can't be written or the machine not read, and say so once."""
        try:
            yield
        except (OSError, ImportError, ValueError, psutil.Error) as error:
            if what not in self._reported:
                self._reported.add(what)
                print(f"no {what}: {error}", flush=True)  # noqa: T201 - the worker's log

    def _when(self, step: int) -> dict[str, float]:
        """Return what a line begins with: its step, how many tokens that is, and when it was."""
        of = self._round
        tokens = {"tokens": step * of.step_tokens} if of.step_tokens else {}
        at_s = round(time.time(), 3)  # noqa: TID251 - for people; TensorBoard's files say it too
        return {"step": step, "round": of.number, **tokens, "at_s": at_s}

    def _system(self, vram_bytes: int) -> dict[str, float]:
        now = time.monotonic()
        if now - self._system_read_s < SYSTEM_INTERVAL_S:
            return {}
        self._system_read_s = now
        readings = {"cpu_percent": psutil.cpu_percent(), "ram_percent": memory_percent()}
        return readings | ({"gpu_vram_mb": vram_bytes / _MIB} if vram_bytes else {})


def older_part(path: Path) -> Path:
    """Return where the lines before those of `path` are kept; those before them are dropped."""
    return path.with_name(f"{path.stem}.1{path.suffix}")


def _take_back(path: Path, from_step: int) -> None:
    """Keep the lines up to a step; a last line that was torn by a crash goes too."""
    if not path.exists():
        return
    retained: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        try:
            is_before = int(json.loads(line)["step"]) <= from_step
        except (ValueError, KeyError, TypeError):
            is_before = False
        if is_before:
            retained.append(line)
    fresh = path.with_suffix(".new")
    fresh.write_text("".join(retained), encoding="utf-8")
    fresh.replace(path)
