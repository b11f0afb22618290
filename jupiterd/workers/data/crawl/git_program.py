"""The git command, as strangers' repositories deserve it: nothing of theirs is ever run.

Owns how git is called and what its complaints mean. Files are read out of a bare repository: there
is no checkout, so no hook, filter, link or submodule plays any part. Doesn't know documents.
"""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Self
from urllib.parse import urlsplit

from jupiterd.errors import EmptySourceError, SourceUnreachableError, WorkFailedError
from jupiterd.workers.data.crawl.allowed_addresses import checked_addresses
from jupiterd.workers.data.crawl.bounded_program import run, started
from jupiterd.workers.data.skips import SkipReason, UnreadableError

_LOCAL_TIMEOUT_S = 600.0

_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.bigFileThreshold=8m",
    "credential.helper=",
    "fetch.fsckObjects=true",
    "fetch.unpackLimit=1",  # one pack, whose size is bounded
    "gc.auto=0",
    "http.followRedirects=false",  # whoever is redirected to hasn't been looked at
    "http.lowSpeedLimit=1000",
    "http.lowSpeedTime=60",
    "http.proxy=",
    "maintenance.auto=false",
    "protocol.version=2",
    "submodule.recurse=false",
)


@dataclass(frozen=True)
class Blob:
    """A file of a commit."""

    id: str
    size_bytes: int
    name: str


@dataclass(frozen=True)
class Repository:
    """A bare repository of this machine, fetched from elsewhere."""

    folder: Path
    url: str
    max_bytes: int
    timeout_s: float
    allow_private: bool

    def newest(self, revision: str) -> str:
        """Return the commit (or annotated tag) that a branch or tag of the other side is at.

        Raises:
            EmptySourceError: there is no such branch or tag.
            SourceUnreachableError: the other side doesn't answer, or refuses.
        """
        names = [f"refs/heads/{revision}", f"refs/tags/{revision}"] if revision else ["HEAD"]
        found: dict[str, str] = {}
        for line in self._remote("ls-remote", self.url, *names).splitlines():
            commit, _, name = line.partition("\t")
            found[name] = commit
        for name in names:
            if name in found:
                return found[name]
        raise EmptySourceError(f"{self.url} has no branch or tag {revision or 'HEAD'}")

    def fetch(self, commit: str) -> None:
        """Fetch one commit without its history, unless a try before this one has it already.

        Raises:
            SourceUnreachableError: the other side doesn't answer, or refuses.
        """
        mark = self.folder / "fetched"
        if mark.exists() and mark.read_text() == commit:
            return
        self._local("init", "--quiet", "--bare", "--template=", str(self.folder))
        self._remote(
            "fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules",
            "--no-write-fetch-head", self.url, commit,
        )  # fmt: skip
        mark.write_text(commit)

    def commit_of(self, name: str) -> str:
        """Return the commit that an annotated tag means; a commit means itself."""
        return self._local("rev-parse", "--verify", f"{name}^{{commit}}").strip()

    def blobs(self, commit: str) -> Iterator[Blob]:
        """Yield the plain files of a commit in the order of their names, as they are read."""
        with self._streaming("ls-tree", "-r", "-z", "--long", commit) as stream:
            for entry in _split_at_zero(stream):
                facts, _, name = entry.partition(b"\t")
                mode, kind, blob, size = facts.split()
                if kind == b"blob" and mode != b"120000":  # no links, no submodules
                    yield Blob(blob.decode(), int(size), os.fsdecode(name))

    def reader(self) -> "BlobReader":
        """Return what reads the content of blobs."""
        return BlobReader(self._start("cat-file", "--batch"))

    def _local(self, *arguments: str) -> str:
        status, output, complaint = run(
            ("git", *self._options(), *arguments),
            self._environment,
            self.max_bytes,
            _LOCAL_TIMEOUT_S,
        )
        if status:
            raise WorkFailedError(f"git {arguments[0]} failed: {_first_line(complaint)}")
        return output

    def _remote(self, *arguments: str) -> str:
        options = self._options() if arguments[0] == "fetch" else ()
        command = ("git", *self._pinned(), *options, *arguments)
        try:
            status, output, complaint = run(
                command, self._environment, self.max_bytes, self.timeout_s
            )
        except TimeoutError as error:
            raise SourceUnreachableError(f"{self.url}: {error}") from error
        if status:
            raise SourceUnreachableError(
                f"{self.url} can't be fetched: {_first_line(complaint)}",
                "check the address, and this machine's way to it",
            )
        return output

    def _start(self, *arguments: str) -> subprocess.Popen[bytes]:
        command = ("git", *self._options(), *arguments)
        return started(command, self._environment, self.max_bytes)

    def _streaming(self, *arguments: str) -> "_Output":
        return _Output(self._start(*arguments))

    def _options(self) -> tuple[str, ...]:
        settings = (f"safe.directory={self.folder}", *_SETTINGS)
        return (f"--git-dir={self.folder}", *(word for one in settings for word in ("-c", one)))

    def _pinned(self) -> tuple[str, ...]:
        """Return the settings by which git connects to an address that was looked at."""
        settings = [*_SETTINGS]
        parts = urlsplit(self.url)
        if parts.scheme != "file":
            host, port = str(parts.hostname), parts.port or {"https": 443, "http": 80}[parts.scheme]
            try:
                addresses = checked_addresses(host, port, allow_private=self.allow_private)
            except UnreadableError as error:
                raise _refusal(self.url, error.reason) from error
            settings.append(f"http.curloptResolve={host}:{port}:{','.join(addresses)}")
        return tuple(word for one in settings for word in ("-c", one))

    @cached_property
    def _environment(self) -> dict[str, str]:
        """Return all that git is to know of this machine."""
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.folder.parent),
            "LC_ALL": "C",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": "true",
            "GIT_ALLOW_PROTOCOL": urlsplit(self.url).scheme,
            "GIT_PROTOCOL_FROM_USER": "0",
            "GIT_LFS_SKIP_SMUDGE": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
        }


class _Output:
    """The output of a running git; ends it when nobody wants more."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def __enter__(self) -> IO[bytes]:
        if self._process.stdout is None:
            raise WorkFailedError("git has no output")
        return self._process.stdout

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


class BlobReader:
    """Reads one blob after the other; a context manager."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def read(self, blob: str) -> bytes:
        """Return a blob's content.

        Raises:
            UnreadableError: git can't read it.
        """
        commands, answered = self._process.stdin, self._process.stdout
        if commands is None or answered is None:
            raise UnreadableError(SkipReason.UNREADABLE)
        commands.write(blob.encode() + b"\n")
        commands.flush()
        head = answered.readline().split()
        if len(head) != 3:
            raise UnreadableError(SkipReason.VANISHED)
        content = answered.read(int(head[2]) + 1)[:-1]
        if len(content) != int(head[2]):
            raise UnreadableError(SkipReason.UNREADABLE)
        return content

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


def _split_at_zero(stream: IO[bytes]) -> Iterator[bytes]:
    rest = b""
    while data := stream.read(1 << 16):
        *entries, rest = (rest + data).split(b"\0")
        yield from entries


def _refusal(url: str, reason: SkipReason) -> EmptySourceError | SourceUnreachableError:
    if reason is SkipReason.PRIVATE_ADDRESS:
        return EmptySourceError(
            f"{url} lies on this machine or its local network",
            "set allow_private_addresses: true at this source, if that is meant",
        )
    return SourceUnreachableError(f"{url} can't be found", "check the address, and the network")


def _first_line(complaint: str) -> str:
    lines = [line for line in complaint.splitlines() if line.startswith(("fatal:", "error:"))]
    return (lines or complaint.splitlines() or ["it says nothing"])[0][:300]
