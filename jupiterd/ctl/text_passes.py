"""How often a training goes over text of this machine that no data set was made of yet.

Owns the look at the sizes of its files. Doesn't know what they hold: markup and pictures count as
text, so that there are at least so many passes.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final

from jupiterd.cycle.training.step_budget import many_passes_line, passes_over
from jupiterd.cycle.training.tuning_batch import tuning_batch

MOST_FILES: Final = 20_000
BYTES_PER_TOKEN: Final = 3
"""Of plain text with most tokenizers about four: fewer makes for fewer passes."""


def passes_lines(told: Mapping[str, Any], asked: Mapping[str, Any]) -> list[str]:
    """Return what is said of too many passes over little text; nothing where nobody can know.

    Args:
        told: what the leader says of the training.
        asked: what it was asked for.
    """
    source: Mapping[str, Any] = asked.get("source") or {}
    steps = (asked.get("settings") or {}).get("max_steps")
    if not steps or source.get("kind") != "folder" or "batch_sequences" not in told:
        return []
    sequences = _size_of(Path(source["path"])) // (BYTES_PER_TOKEN * told["seq_len"])
    least, most = told.get("least_batch_sequences") or 0, told["batch_sequences"]
    batch = tuning_batch(sequences, least, most) if least else most
    line = many_passes_line(passes_over(steps, batch, sequences), is_least=True)
    return [line] if line else []


def _size_of(path: Path) -> int:
    """Return the bytes below a path; 0 where there are too many files to look at."""
    sizes = list(islice(_sizes(path), MOST_FILES))
    return sum(sizes) if len(sizes) < MOST_FILES else 0


def _sizes(path: Path) -> Iterator[int]:
    for file in (path,) if path.is_file() else path.rglob("*"):
        if file.is_file():
            yield file.stat().st_size
