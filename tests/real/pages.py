"""Real documents that a model is tuned on.

Owns where they come from, and a fixed choice of them: labelled pages of five open projects where
those lie beside the repository, which has no copy of them; elsewhere Jupiter's own pages and the
chapters of the language reference that come with Python.
"""

from collections.abc import Iterator
from pathlib import Path

from blake3 import blake3

ROOT = Path(__file__).resolve().parents[2]
MOST_PAGE_BYTES = 16_384


def write_pages(to: Path, most_bytes: int) -> Path:
    """Write so much of them into a folder, the same pages each time; return it."""
    left = most_bytes
    for name, text in sorted(_pages(), key=lambda page: blake3(page[0].encode()).digest()):
        size = len(text.encode())
        if size > min(left, MOST_PAGE_BYTES):
            continue
        left -= size
        page = to / name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text, encoding="utf-8")
    return to


def _pages() -> Iterator[tuple[str, str]]:
    beside = (up / "shared" / "corpora" / "en" for up in ROOT.parents[:2])
    folder = next((each for each in beside if each.is_dir()), None)
    for page in (folder or ROOT / "docs").rglob("*.md"):
        yield str(page.relative_to(folder or ROOT)), page.read_text(encoding="utf-8")
    if folder is None:
        from pydoc_data.topics import topics

        yield from ((f"python/{name}.md", text) for name, text in topics.items())
