"""The documentation as tests read it: pages, their headings, links and blocks of code.

Owns that much of Markdown as the pages use. Doesn't know what any test wants of them.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).parent.parent.parent

LEFT_OUT = {".git", ".venv", ".demo", ".demo-before", "node_modules", "build", "dist"}

_FENCE = re.compile(r"^(?P<indent> *)(?P<mark>`{3,}) *(?P<language>\S*)")
_HEADING = re.compile(r"^(?P<level>#{1,6}) +(?P<text>.+?) *$")
_LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\((?P<target>[^)\s]+)\)")
_INLINE = re.compile(r"`([^`\n]+(?:\n[^`\n]+)?)`")


@dataclass(frozen=True)
class Block:
    """One block of code."""

    page: Path
    line: int
    """Of its fence, from 1."""
    language: str
    text: str

    @property
    def where(self) -> str:
        """Return what a failing test names it by."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"


@cache
def pages() -> tuple[Path, ...]:
    """Return every Markdown file of the repository."""
    found = (path for path in ROOT.rglob("*.md") if not LEFT_OUT & set(path.parts))
    return tuple(sorted(path for path in found if not _is_ours_alone(path)))


def _is_ours_alone(path: Path) -> bool:
    """Say whether a folder beside the repository's own was made by hand, such as an environment."""
    return any(part.startswith(".") for part in path.relative_to(ROOT).parts)


@cache
def blocks(page: Path) -> tuple[Block, ...]:
    """Return the blocks of code of a page, in their order; those within lists too."""
    found: list[Block] = []
    lines = iter(enumerate(page.read_text(encoding="utf-8").splitlines(), 1))
    for number, line in lines:
        if fence := _FENCE.match(line):
            text = "\n".join(_inside(lines, fence["mark"], len(fence["indent"])))
            found.append(Block(page, number, fence["language"], text))
    return tuple(found)


def _inside(lines: Iterator[tuple[int, str]], mark: str, indent: int) -> Iterator[str]:
    for _, line in lines:
        if line.strip().startswith(mark):
            return
        yield line[indent:]


@cache
def prose(page: Path) -> str:
    """Return a page without its blocks of code."""
    kept: list[str] = []
    mark = ""
    for line in page.read_text(encoding="utf-8").splitlines():
        if mark:
            mark = "" if line.strip().startswith(mark) else mark
        elif fence := _FENCE.match(line):
            mark = fence["mark"]
        else:
            kept.append(line)
    return "\n".join(kept)


def headings(page: Path) -> list[tuple[int, str]]:
    """Return (level, text) of each heading."""
    found = map(_HEADING.match, prose(page).splitlines())
    return [(len(match["level"]), match["text"]) for match in found if match]


def anchors(page: Path) -> set[str]:
    """Return what a link to a heading of this page may name, as GitHub makes it."""
    seen: Counter[str] = Counter()
    found: set[str] = set()
    for _, text in headings(page):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).lower()
        anchor = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        found.add(f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
        seen[anchor] += 1
    return found


def links(page: Path) -> list[str]:
    """Return the targets of all links and pictures of a page."""
    return [unquote(match["target"]) for match in _LINK.finditer(prose(page))]


def inline_code(page: Path) -> list[str]:
    """Return what stands between single backticks, a line's end within it made a space."""
    found = _INLINE.findall(prose(page))
    return [re.sub(r"\s+", " ", text).replace("\\|", "|").strip() for text in found]
