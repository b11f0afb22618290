"""What the gate is told, as files of a folder.

Owns reading and writing them. Their form is `cycle.gate.record`'s.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from jupiterd.cycle.gate.record import (
    CLOZE_FILE,
    MATERIAL_FILES,
    SANITY_FILE,
    SCORES_FILE,
    Material,
    cloze_lines,
    read_material,
    sanity_text,
    score_lines,
)
from jupiterd.cycle.gate.sanity import Sanity
from jupiterd.cycle.gate.scores import ClozeScore, DocumentScore
from jupiterd.cycle.generation.completions import COMPLETIONS_FILE, Completion, completion_lines


def write_scores(
    folder: Path, scores: Sequence[DocumentScore], cloze: Sequence[ClozeScore] = ()
) -> None:
    """Write the scores of a piece, or of all."""
    write_text(folder / SCORES_FILE, score_lines(scores))
    write_text(folder / CLOZE_FILE, cloze_lines(cloze))


def write_sanity(folder: Path, sanity: Sanity) -> None:
    """Write what was seen of a candidate that was tried out."""
    write_text(folder / SANITY_FILE, sanity_text(sanity))


def write_completions(folder: Path, completions: Sequence[Completion]) -> None:
    """Write what a candidate wrote when it was tried out; the gate doesn't read it."""
    write_text(folder / COMPLETIONS_FILE, completion_lines(completions))


def write_text(path: Path, text: str) -> None:
    """Write a file, and the folder that it is in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")


def read_folders(folders: Iterable[Path]) -> Material:
    """Return what the gate's files in these folders hold together.

    Raises:
        CorruptArtifactError: a line is no score, or a document was scored twice.
    """
    places = list(folders)
    return read_material(
        {
            name: [
                (folder / name).read_text(encoding="utf-8")
                for folder in places
                if (folder / name).is_file()
            ]
            for name in MATERIAL_FILES
        }
    )
