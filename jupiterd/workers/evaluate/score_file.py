"""Scores on disk: `scores.jsonl`, one document on each line.

Owns that form. Doesn't know who scored or who judges.
"""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

from jupiterd.cycle.gate import DocumentScore
from jupiterd.errors import CorruptArtifactError

FILE_NAME = "scores.jsonl"


def write_scores(folder: Path, scores: Sequence[DocumentScore]) -> None:
    """Write the scores, sorted by document."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / FILE_NAME).open("w", encoding="utf-8", newline="\n") as file:
        for score in sorted(scores, key=lambda score: score.id):
            file.write(json.dumps(json_safe(asdict(score)), sort_keys=True, allow_nan=False) + "\n")


def read_scores(folders: Iterable[Path]) -> list[DocumentScore]:
    """Return the scores of all folders; no document may stand in two.

    Raises:
        CorruptArtifactError: a line is no score, or a document was scored twice.
    """
    found: dict[str, DocumentScore] = {}
    for folder in folders:
        for line in (folder / FILE_NAME).read_text(encoding="utf-8").splitlines():
            score = _parsed(line)
            if score.id in found:
                raise CorruptArtifactError(f"document {score.id[:8]} was scored in two pieces")
            found[score.id] = score
    return list(found.values())


def json_safe(fields: dict[str, object]) -> dict[str, object]:
    """Return the fields with null for every number that isn't finite, as JSON demands."""
    return {name: _finite_or_none(value) for name, value in fields.items()}


def _finite_or_none(value: object) -> object:
    if isinstance(value, dict):
        return json_safe(cast("dict[str, object]", value))
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _parsed(line: str) -> DocumentScore:
    try:
        fields: dict[str, Any] = json.loads(line)
        for name in (name for name in fields if name.endswith("_nats")):
            fields[name] = math.inf if fields[name] is None else float(fields[name])
        return DocumentScore(**fields)
    except (ValueError, TypeError, AttributeError) as error:
        raise CorruptArtifactError("a line of a score file is no score") from error
