"""The text that a round's verdict is about, as far as it was scored.

Owns reading it out of the folders that the daemon names. Doesn't know what it is read for.
"""

from collections.abc import Iterable
from pathlib import Path

from jupiterd.cycle.data.split import GATE
from jupiterd.cycle.gate.record import CLOZE_FILE, SCORES_FILE, read_cloze_lines, read_score_lines
from jupiterd.cycle.gate.scores import ClozeScore, DocumentScore
from jupiterd.errors import CorruptArtifactError, NotFoundError
from jupiterd.store.sample_lookup import find_samples, read_sample


def judged_on(verdict: Path) -> tuple[list[DocumentScore], list[ClozeScore]]:
    """Return the scores of the gate's part of the held-out text, sorted by id, and of its gaps.

    Raises:
        CorruptArtifactError: the verdict's files can't be read.
    """
    try:
        scores = read_score_lines([(verdict / SCORES_FILE).read_text(encoding="utf-8")])
        gaps = read_cloze_lines([(verdict / CLOZE_FILE).read_text(encoding="utf-8")])
    except OSError as error:
        raise CorruptArtifactError("the verdict's scores can't be read") from error
    return sorted((row for row in scores if row.part == GATE), key=lambda row: row.id), gaps


def scored_text(places: Iterable[Path], row: DocumentScore) -> str:
    """Return the scored part of a held-out document: its first `row.bytes` bytes.

    Raises:
        NotFoundError: no folder has it.
    """
    for folder in places:
        for place in find_samples(folder, row.id, 1):
            data = read_sample(folder, place).text.encode("utf-8", "surrogatepass")
            return data[: row.bytes].decode("utf-8", "replace")
    raise NotFoundError(
        f"the held-out document {row.id[:8]} isn't in reach", "start the nodes that have it"
    )
