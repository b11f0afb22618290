"""What a run leaves for people who look at curves: JSON lines, and TensorBoard's event files.

Owns both files and the names in them. Doesn't know where the numbers come from. A run that goes on
from an earlier step takes back what it had written beyond it.
"""

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

JSONL_FILE = "metrics.jsonl"

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
    "tokens_per_s": "Speed/tokens_per_s",
    "mfu": "Speed/MFU",
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
    """The files of one run in one folder; written by rank 0 alone."""

    def __init__(self, folder: Path, from_step: int, of: Round | None = None) -> None:
        from tensorboardX import SummaryWriter

        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / JSONL_FILE
        self._round = of or Round()
        _take_back(self._path, from_step)
        self._lines = self._path.open("a", encoding="utf-8")
        self._board: Any = SummaryWriter(str(folder), purge_step=from_step + 1, flush_secs=10)
        self._system_read_s = float("-inf")

    def close(self) -> None:
        """Write what is left, as far as there is room for it."""
        with suppress(OSError):
            self._lines.close()
        with suppress(OSError):
            self._board.close()

    def write(self, step: int, readings: Mapping[str, float | None], vram_bytes: int = 0) -> None:
        """Write the readings that there are at the end of a step.

        Where the disk is full the step has no reading: no curve is worth a step of training.
        """
        known = {name: value for name, value in readings.items() if value is not None}
        known |= self._system(vram_bytes)
        with suppress(OSError):
            self._lines.write(json.dumps({**self._when(step), **known}) + "\n")
            self._lines.flush()
        for name, value in known.items():
            with suppress(OSError):
                self._board.add_scalar(TAGS.get(name, name), value, step)

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
        memory: Any = psutil.virtual_memory()
        readings = {"cpu_percent": psutil.cpu_percent(), "ram_percent": float(memory.percent)}
        return readings | ({"gpu_vram_mb": vram_bytes / _MIB} if vram_bytes else {})


def opened_metrics(folder: Path, from_step: int, of: Round | None = None) -> RunMetrics | None:
    """Open the files of a run; None where the disk has no room for them."""
    try:
        return RunMetrics(folder, from_step, of)
    except OSError:
        return None


def _take_back(path: Path, from_step: int) -> None:
    """Keep the lines up to a step; a last line that was torn by a crash goes too."""
    if not path.exists():
        return
    kept: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        try:
            is_kept = int(json.loads(line)["step"]) <= from_step
        except (ValueError, KeyError, TypeError):
            is_kept = False
        if is_kept:
            kept.append(line)
    fresh = path.with_suffix(".new")
    fresh.write_text("".join(kept), encoding="utf-8")
    fresh.replace(path)
