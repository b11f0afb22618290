"""The check whether this machine can reach the sources of a domain.

Owns one short check of each source: a look at the disk, `git ls-remote` or HEAD requests, up to
AT_ONCE sources at the same time. `pinned_request` makes the network requests and limits their time.
Reads no content.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from jupiterd.ctl.sources.pinned_request import PinnedRequest, UnreachableError
from jupiterd.cycle.base.globs import WantedNames
from jupiterd.cycle.domain.data_sources import (
    DataSource,
    FeedSource,
    FolderSource,
    GitSource,
    HuggingFaceSource,
    JsonlSource,
    ParquetSource,
    WebSource,
)
from jupiterd.path_text import path_of

HUB = "https://huggingface.co"
TIMEOUT_S = 10.0
AT_ONCE = 8
MAX_REQUESTED = 8
"""How many of a source's addresses are requested: the first ones."""

_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")


@dataclass(frozen=True)
class SourceReach:
    """The result of checking one source."""

    name: str
    kind: str
    where: str
    problem: str
    """Empty: it can be reached."""


def reach(sources: Sequence[DataSource], timeout_s: float = TIMEOUT_S) -> list[SourceReach]:
    """Check every source; return the results in the order of the sources."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(partial(_reached, timeout_s=timeout_s), sources))


def not_on_this_disk(sources: Sequence[DataSource]) -> list[str]:
    """Return a line for each source of files that this machine's disk doesn't have."""
    lying = [
        each for each in sources if isinstance(each, FolderSource | JsonlSource | ParquetSource)
    ]
    return [
        f"source {each.name} ({each.kind}, {each.where}): {each.problem}; "
        "only a machine whose jupiter.yaml has it in readable_folders reads it for you"
        for each in reach(lying)
        if each.problem
    ]


def where(source: DataSource) -> str:
    """Return the path or address of a source, for people."""
    match source:
        case FolderSource() | JsonlSource() | ParquetSource() | HuggingFaceSource():
            return source.path
        case GitSource():
            return source.url
        case WebSource() | FeedSource():
            more = len(source.urls) - 1
            return source.urls[0] + (f" and {more} more" if more else "")
        case _:
            return "this machine's Python"


def _reached(source: DataSource, timeout_s: float) -> SourceReach:
    try:
        _ask(source, timeout_s)
        problem = ""
    except UnreachableError as error:
        problem = str(error)
    return SourceReach(source.name, source.kind, where(source), problem)


def _ask(source: DataSource, timeout_s: float) -> None:
    match source:
        case FolderSource():
            _look(source.path, [source.glob], source.exclude, must_be_folder=True)
        case JsonlSource():
            _look(source.path, ["**/*.jsonl*", "**/*.ndjson*"])
        case ParquetSource():
            _look(source.path, ["**/*.parquet"])
        case GitSource():
            _ask_repository(source, timeout_s)
        case WebSource():
            urls = (*source.urls, *source.sitemaps)
            _ask_pages(urls, timeout_s, allow_private=source.allow_private_addresses)
        case FeedSource():
            _ask_pages(source.urls, timeout_s, allow_private=source.allow_private_addresses)
        case HuggingFaceSource():
            mirror = os.environ.get("HF_ENDPOINT", "")
            page = f"{mirror.rstrip('/') or HUB}/datasets/{source.path}"
            _ask_pages([page], timeout_s, allow_private=bool(mirror))
        case _:
            pass


def _look(
    path: str, globs: Sequence[str], exclude: Sequence[str] = (), *, must_be_folder: bool = False
) -> None:
    root = path_of(path)
    if root.is_file() and not must_be_folder:
        if not os.access(root, os.R_OK):
            raise UnreachableError("the file can't be read")
        return
    if not root.is_dir():
        raise UnreachableError("there is no such folder on this machine")
    try:
        wanted = [WantedNames(glob, exclude) for glob in globs]
    except re.error as error:
        raise UnreachableError(
            f"{' or '.join((*globs, *exclude))!r} is no glob: {error}"
        ) from error
    names = _names_below(root)
    if not any(each.has(name) for name in names for each in wanted):
        raise UnreachableError(f"no file in it matches {' or '.join(globs)}")


def _names_below(root: Path) -> Iterator[str]:
    """Yield the paths of the files below a folder, relative to it, without hidden ones."""
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".")]
        below = Path(folder).relative_to(root)
        yield from ((below / name).as_posix() for name in files if not name.startswith("."))


def _ask_repository(source: GitSource, timeout_s: float) -> None:
    is_commit = _COMMIT.fullmatch(source.revision) is not None
    wanted = "HEAD" if is_commit or not source.revision else source.revision
    PinnedRequest(timeout_s, source.allow_private_addresses).repository(source.url, wanted)


def _ask_pages(urls: Iterable[str], timeout_s: float, *, allow_private: bool) -> None:
    asking = PinnedRequest(timeout_s, allow_private)
    for url in list(urls)[:MAX_REQUESTED]:
        asking.page(url)
