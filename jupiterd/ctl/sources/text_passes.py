"""How often a training goes over text of this machine that no data set was made of yet.

Owns the look at the sizes of its files. Doesn't know what they hold: markup and pictures count as
text, so that there are at least so many passes. Packed files may hold more text than bytes: nothing
is known of them.
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
"""Of plain text with most tokenizers about four: fewer makes for fewer passes."""
PACKED: Final = frozenset(
    {".gz", ".xz", ".zip", ".zst", ".parquet", ".docx", ".epub", ".odt", ".pdf"}
)
"""Endings of files that may hold more text than they have bytes."""


def passes_lines(answer: Mapping[str, Any], requested: Mapping[str, Any]) -> list[str]:
    """Return what is said of too many passes over little text; nothing where nobody can know.

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
    least_passes = min(passes, settings.get("epochs") or passes)  # whichever ends first
    line = many_passes_line(least_passes, is_least=True)
    return [line] if line else []


def _size_of(path: Path) -> int:
    """Return the bytes of text below a path, or more; 0 where nobody can know.

    That is where a file is packed or can't be looked at, and where there are too many of them.
    """
    with suppress(OSError):  # the run was ordered already: it says itself what it can't read
        files = list(islice(_files(path), MOST_FILES))
        is_known = len(files) < MOST_FILES and all(
            file.suffix.lower() not in PACKED for file in files
        )
        return sum(file.stat().st_size for file in files) if is_known else 0
    return 0


def _files(path: Path) -> Iterator[Path]:
    """Yield the files of a path, or below it."""
    return filter(Path.is_file, (path,) if path.is_file() else path.rglob("*"))
