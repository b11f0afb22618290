"""Real documents that a model is tuned on.

Owns where they lie: labelled pages of five open projects where those lie beside the repository,
which has no copy of them, and Jupiter's own documentation elsewhere.
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def pages() -> Path:
    """Return their folder."""
    beside = (folder / "shared" / "corpora" / "en" for folder in ROOT.parents[:2])
    return next((folder for folder in beside if folder.is_dir()), ROOT / "docs")
