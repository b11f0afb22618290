"""The loss of every step, where this machine has written it.

Owns reading the lines that rank 0 leaves (`workers.train.metrics`). A line that was torn is passed
over: it is being written.
"""

import json
from pathlib import Path

from jupiterd.ctl.report.chart import Point, Series

METRICS_FILE = "metrics.jsonl"
MAX_BYTES = 64 << 20
"""Of one file; the end of a longer one is read."""


def read_curves(folder: Path | None) -> list[Series]:
    """Return the training and validation loss of the newest round, by step; of islands, each."""
    if folder is None:
        return []
    files = sorted(folder.glob(f"**/{METRICS_FILE}"))
    found = [series for path in files for series in _curves(path, folder)]
    return [series for series in found if series.points]


def _curves(path: Path, folder: Path) -> list[Series]:
    whose = "" if path.parent == folder else f"{path.parent.name} "
    loss: list[Point] = []
    held_out: list[Point] = []
    for line in _lines(path):
        try:
            told = json.loads(line)
            step = float(told["step"])
            if told.get("loss") is not None:
                loss.append((step, float(told["loss"])))
            if told.get("val_loss") is not None:
                held_out.append((step, float(told["val_loss"])))
        except (ValueError, KeyError, TypeError):
            continue
    return [Series(f"{whose}training", loss), Series(f"{whose}held out", held_out)]


def _lines(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - MAX_BYTES))
            return file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return []
