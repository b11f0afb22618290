"""Reads a verdict's folder on this machine, and decides again on its files.

Owns reading the files for `cycle.gate.record`, and the comparison. Doesn't find the folders.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jupiterd.cycle.gate.record import (
    MATERIAL_FILES,
    SCORES_FILE,
    VERDICT_FILE,
    decide_on,
    read_material,
    read_verdict,
)
from jupiterd.errors import CorruptArtifactError, NotFoundError


@dataclass(frozen=True)
class DecidedAgain:
    """The recorded verdict, and the verdict that the same files give now."""

    recorded: dict[str, Any]
    """The content of verdict.json."""
    again: dict[str, Any]
    is_same: bool
    """Whether both have the same bytes."""


def recorded_verdict(folder: Path) -> dict[str, Any]:
    """Return the content of a folder's verdict.json.

    Raises:
        NotFoundError: the file can't be read.
        CorruptArtifactError: its content isn't a verdict.
    """
    return read_verdict(_text(folder / VERDICT_FILE))


def decide_again(folder: Path, material: Sequence[Path]) -> DecidedAgain:
    """Decide again on the scores in `material`, under the rules that the verdict names.

    Raises:
        NotFoundError: a file is missing or can't be read.
        CorruptArtifactError: the content of a file can't be used.
    """
    before = _text(folder / VERDICT_FILE)
    recorded = read_verdict(before)
    files = {
        name: [_text(each / name) for each in material if (each / name).is_file()]
        for name in MATERIAL_FILES
    }
    if not files[SCORES_FILE]:
        raise NotFoundError(f"{material[0]} has no {SCORES_FILE}", _HINT)
    try:
        _, text = decide_on(read_material(files), recorded["given"], recorded["schema"])
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptArtifactError(
            f"{folder / VERDICT_FILE} doesn't say what was given: {error}", _HINT
        ) from error
    return DecidedAgain(recorded, read_verdict(text), is_same=text == before)


_HINT = "a verdict's folder has verdict.json and scores.jsonl, as the gate wrote them"


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise NotFoundError(f"{path} can't be read", _HINT) from error
