"""Whether the sources of a domain can be reached from this machine.

Owns one short question to each: a look at the disk, `git ls-remote`, a HEAD request; all at the
same time, each within a time limit. Reads no content. Private addresses are refused as they are
when text is collected.
"""

import os
import re
import socket
import subprocess
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from jupiterd.cycle.data_sources import (
    DataSource,
    FeedSource,
    FolderSource,
    GitSource,
    HuggingFaceSource,
    JsonlSource,
    ParquetSource,
    WebSource,
)
from jupiterd.cycle.public_addresses import is_public

if TYPE_CHECKING:
    import httpx

TIMEOUT_S = 10.0
AT_ONCE = 8
MAX_ASKED = 8
"""Of many addresses of one source these are asked, the first ones."""

MAX_REDIRECTS = 5
USER_AGENT = "JupiterCollector/1"
_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_REFUSES_HEAD = (405, 501)


@dataclass(frozen=True)
class Reached:
    """What came of one source."""

    name: str
    kind: str
    where: str
    problem: str
    """Empty: it can be reached."""


class _UnreachableError(Exception):
    """A source can't be reached; the text says why."""


def reach(sources: Sequence[DataSource], timeout_s: float = TIMEOUT_S) -> list[Reached]:
    """Ask every source; return what came of each, in their order."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(partial(_reached, timeout_s=timeout_s), sources))


def where(source: DataSource) -> str:
    """Return where a source lies, as people know it."""
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


def _reached(source: DataSource, timeout_s: float) -> Reached:
    try:
        _ask(source, timeout_s)
        problem = ""
    except _UnreachableError as error:
        problem = str(error)
    return Reached(source.name, source.kind, where(source), problem)


def _ask(source: DataSource, timeout_s: float) -> None:
    match source:
        case FolderSource():
            _look(source.path, [source.glob], must_be_folder=True)
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
            page = f"https://huggingface.co/datasets/{source.path}"
            _ask_pages([page], timeout_s, allow_private=False)
        case _:
            pass


def _look(path: str, globs: Sequence[str], *, must_be_folder: bool = False) -> None:
    root = Path(path).expanduser()
    if root.is_file() and not must_be_folder:
        if not os.access(root, os.R_OK):
            raise _UnreachableError("the file can't be read")
        return
    if not root.is_dir():
        raise _UnreachableError("there is no such folder on this machine")
    try:
        found = (path for glob in globs for path in root.glob(glob) if path.is_file())
        if next(found, None) is None:
            raise _UnreachableError(f"no file in it matches {' or '.join(globs)}")
    except (OSError, ValueError, NotImplementedError) as error:  # the last for absolute globs
        raise _UnreachableError(f"it can't be searched: {error}") from error


def _ask_repository(source: GitSource, timeout_s: float) -> None:
    parts = urlsplit(source.url)
    if parts.scheme != "file" and not source.allow_private_addresses:
        _refuse_private(source.url)
    is_commit = _COMMIT.fullmatch(source.revision) is not None
    wanted = "HEAD" if is_commit or not source.revision else source.revision
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_ALLOW_PROTOCOL": parts.scheme}
    command = (
        "git", "-c", "http.followRedirects=false", "-c", "credential.helper=",
        "ls-remote", "--exit-code", "--", source.url, wanted,
    )  # fmt: skip
    try:
        done = subprocess.run(
            command, timeout=timeout_s, env=environment, check=False, capture_output=True,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except FileNotFoundError as error:
        raise _UnreachableError("git isn't installed") from error
    except subprocess.TimeoutExpired as error:
        raise _UnreachableError(f"no answer within {timeout_s:g} s") from error
    if done.returncode == 2:  # what --exit-code says where nothing matches
        raise _UnreachableError(f"it has no branch or tag {wanted}")
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise _UnreachableError(f"git says: {''.join(last) or 'nothing'}")


def _ask_pages(urls: Iterable[str], timeout_s: float, *, allow_private: bool) -> None:
    import httpx

    headers = {"User-Agent": USER_AGENT}
    with httpx.Client(timeout=timeout_s, headers=headers, follow_redirects=False) as client:
        for url in list(urls)[:MAX_ASKED]:
            try:
                _ask_page(client, url, allow_private=allow_private)
            except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
                said = str(error) or type(error).__name__
                raise _UnreachableError(f"{url}: {said}") from error


def _ask_page(client: "httpx.Client", url: str, *, allow_private: bool) -> None:
    at = url
    for _ in range(MAX_REDIRECTS + 1):
        if not allow_private:
            _refuse_private(at)
        answer = client.head(at)
        if answer.status_code in _REFUSES_HEAD:
            with client.stream("GET", at) as answer:  # its body isn't read
                pass
        location = answer.headers.get("location")
        if answer.is_redirect and location:
            at = urljoin(at, location)
            continue
        if answer.is_error:
            raise _UnreachableError(f"{url}: the server says {answer.status_code}")
        return
    raise _UnreachableError(f"{url}: more than {MAX_REDIRECTS} redirects")


def _refuse_private(url: str) -> None:
    host = urlsplit(url).hostname or ""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise _UnreachableError(f"nobody knows the host {host}") from error
    if not all(is_public(str(entry[4][0])) for entry in found):
        raise _UnreachableError(
            f"{host} is in a private network; allow_private_addresses: true allows that"
        )
