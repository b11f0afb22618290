"""An estimate of how often a training goes over text of this machine that isn't a data set yet.

Owns the sum of the sizes of its files. Doesn't read them: markup and pictures count as text, so the
estimate is a lower bound of the passes. Compressed files may hold more text than bytes, so there is
no estimate if there is one.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, Final

from jupiterd.cycle.training.step_budget import many_passes_line, passes_over
from jupiterd.cycle.training.tuning_batch import tuning_batch

MOST_FILES: Final = 20_000
BYTES_PER_TOKEN: Final = 3
"""Most tokenizers need about four for plain text; with three, the passes aren't overestimated."""
PACKED: Final = frozenset(
    {".gz", ".xz", ".zip", ".zst", ".parquet", ".docx", ".epub", ".odt", ".pdf"}
)
"""Suffixes of files that may hold more text than they have bytes."""


def passes_lines(answer: Mapping[str, Any], requested: Mapping[str, Any]) -> list[str]:
    """Return a warning about too many passes over little text; empty: it isn't so, or isn't known.

    Args:
        answer: the leader's answer about the training.
        requested: fields of the command.
    """
    source: Mapping[str, Any] = requested.get("source") or {}
    settings: Mapping[str, Any] = requested.get("settings") or {}
    steps = settings.get("max_steps")
    if not steps or source.get("kind") != "folder" or "batch_sequences" not in answer:
        return []
    sequences = _size_of(Path(source["path"])) // (BYTES_PER_TOKEN * answer["seq_len"])
    least, most = answer.get("least_batch_sequences") or 0, answer["batch_sequences"]
    batch = tuning_batch(sequences, least, most) if least else most
    passes = passes_over(steps, batch, sequences)
    least_passes = min(passes, settings.get("epochs") or passes)  # the first limit ends it
    line = many_passes_line(least_passes, is_least=True)
    return [line] if line else []


def _size_of(path: Path) -> int:
    """Return an upper bound of the bytes of text below a path; 0: unknown.

    It is unknown if a file is compressed or can't be read, or if there are too many files.
    """
    with suppress(OSError):  # the run was already ordered, and reports itself what it can't read
        files = list(islice(_files(path), MOST_FILES))
        is_known = len(files) < MOST_FILES and all(
            file.suffix.lower() not in PACKED for file in files
        )
        return sum(file.stat().st_size for file in files) if is_known else 0
    return 0


def _files(path: Path) -> Iterator[Path]:
    """Return the path itself if it is a file, else the files below it."""
    return filter(Path.is_file, (path,) if path.is_file() else path.rglob("*"))
