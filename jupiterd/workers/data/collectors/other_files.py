"""Which files of a folder are no documents: images, fonts, recordings, style sheets of pages.

Owns the endings. Doesn't read files, or know what documents are made of.

A style sheet or a script counts as such where it lies beside web pages, or in a folder of theirs;
elsewhere it is code that somebody wrote.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Final

_NO_DOCUMENT: Final = frozenset(
    (  # noqa: SIM905 - one line otherwise for each
        "avif bmp cur eps gif heic icns ico jpeg jpg png psd svg svgz tif tiff webp xbm xcf xpm "
        "eot otf ttf woff woff2 aac flac m4a mid mp3 oga ogg opus wav avi m4v mkv mov mp4 mpeg "
        "mpg ogv webm a class dll dylib exe lib mo o obj pdb pyc pyd pyo so wasm map"
    ).split()
)
_OF_PAGES: Final = frozenset({"css", "js"})
_FOLDERS_UP: Final = 3
_PAGES: Final = (".html", ".htm", ".xhtml")


def is_no_document(name: str, language: str, has_pages: Callable[[], bool]) -> bool:
    """Say whether nobody would take a file for a document.

    Args:
        name: its name, unpacked.
        language: the domain's; in one of code, scripts and style sheets are what is wanted.
        has_pages: says whether web pages lie beside the file.
    """
    ending = PurePosixPath(name.lower()).suffix.removeprefix(".")
    if ending in _OF_PAGES:
        return not language.startswith("code:") and has_pages()
    return ending in _NO_DOCUMENT


def is_among_pages(file: Path, name: str) -> bool:
    """Say whether there are web pages in a file's folder, or in one of those above it.

    name: the file's, relative to the source: what lies above that is nobody's business.
    """
    own = len(PurePosixPath(name).parts)
    return any(map(_has_pages, file.parents[: min(own, _FOLDERS_UP)]))


@cache
def _has_pages(folder: Path) -> bool:
    try:
        return any(each.name.lower().endswith(_PAGES) for each in folder.iterdir())
    except OSError:
        return False
