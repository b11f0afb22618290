"""General text that ships with Jupiter: what a model shouldn't forget while it learns a domain.

Owns finding it, and its form: `config/general_text` holds a file for each source, whose passages
are parted by lines of PART alone. `docs/licences.md` says where each comes from. Doesn't know who
is scored by it, or what follows.
"""

from pathlib import Path

from jupiterd.cycle.data.lineage import text_hash
from jupiterd.cycle.gate.scores import GENERAL
from jupiterd.cycle.phases.evaluate import GENERAL_TEXT
from jupiterd.errors import CorruptArtifactError, UsageError
from jupiterd.locations import config_folder
from jupiterd.workers.evaluate.documents import ScoredDocument

FOLDER = Path("general_text")
PART = "%%"


def general_documents(name: str) -> list[ScoredDocument]:
    """Return the passages of the general text of this name@version; none of the empty name.

    Each source is a cluster.

    Raises:
        UsageError: this build has another version.
        CorruptArtifactError: the text isn't there.
    """
    if not name:
        return []
    if name != GENERAL_TEXT:
        raise UsageError(
            f"general text {name} isn't here, only {GENERAL_TEXT}", "upgrade this node"
        )
    files = sorted((config_folder() / FOLDER).glob("*.txt"))
    if not files:
        raise CorruptArtifactError(
            "the general text that ships with Jupiter isn't installed",
            "install Jupiter again: installers/install.sh",
        )
    found = [passage for file in files for passage in _passages(file)]
    return sorted(found, key=lambda document: document.id)


def _passages(file: Path) -> list[ScoredDocument]:
    texts = file.read_text(encoding="utf-8").split(f"\n{PART}\n")
    return [
        ScoredDocument(text_hash(text), file.stem, GENERAL, text, len(text.encode()), GENERAL)
        for text in map(str.strip, texts)
        if text
    ]
