"""The data sources of a domain file: one class for each kind.

Owns what can be said of each kind, its bounds, and the names of sources. Doesn't know how any of
them is read: `workers/data/collectors` has a file for each.
"""

import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from jupiterd.cycle.base.licenses import (
    PRIVATE_LICENSE,
    PYTHON_LICENSE,
    UNKNOWN_LICENSE,
    LicenseId,
    LicensePolicy,
)
from jupiterd.cycle.base.strict_model import StrictModel

MAX_NAME_CHARS = 64

_Path = Annotated[
    str,
    Field(
        pattern=r"^(/|~/)",
        max_length=4096,
        json_schema_extra={"expected": "an absolute path, or one that begins with ~/"},
    ),
]
_Name = Annotated[
    str,
    Field(
        pattern=r"^([^\W_A-Z](?:[^\WA-Z]|[.-]){0,63})?$",
        json_schema_extra={"expected": "up to 64 lower-case letters, digits, dots, - and _"},
    ),
]
_WebUrl = Annotated[
    str,
    Field(
        pattern=r"^https?://[^\s/?#@]+([/?#]\S*)?$",
        max_length=2048,
        json_schema_extra={"expected": "an address such as https://example.org/docs/"},
    ),
]
_WebUrls = Annotated[tuple[_WebUrl, ...], Field(strict=False, max_length=1024)]
_StartUrls = Annotated[tuple[_WebUrl, ...], Field(strict=False, min_length=1, max_length=1024)]
_GitUrl = Annotated[
    str,
    Field(
        pattern=r"^(https?|file)://[^\s@]+$",
        max_length=2048,
        json_schema_extra={"expected": "a repository such as https://example.org/one.git"},
    ),
]
_Revision = Annotated[
    str,
    Field(
        pattern=r"^([A-Za-z0-9][A-Za-z0-9._/+-]{0,254})?$",
        json_schema_extra={"expected": "a branch, a tag or a whole commit id"},
    ),
]
_Glob = Annotated[str, Field(min_length=1, max_length=256)]
_Globs = Annotated[tuple[_Glob, ...], Field(strict=False, max_length=64)]
_Key = Annotated[str, Field(max_length=256)]
_Count = Annotated[int, Field(ge=1, le=1_000_000_000)]
_Bytes = Annotated[int, Field(ge=1024, le=1 << 44)]
MAX_DOCUMENT_BYTES = 1 << 28
"""The most a source may allow: a sample of it still fits a frame (`cycle.data.sample_index`)."""

_DocumentBytes = Annotated[int, Field(ge=1024, le=MAX_DOCUMENT_BYTES)]
_ClusterDepth = Annotated[int, Field(ge=0, le=8)]


class _Source(StrictModel, ABC):
    """What every kind of source has."""

    name: _Name = ""
    """What the samples' provenance calls it; derived where it is left out, unique in a domain."""
    max_bytes: _Bytes = 16 << 30
    """Nothing more is read once so many bytes were."""
    max_document_bytes: _DocumentBytes = 8 << 20
    """A larger document is a table or a dump, and would sit in memory whole: it is left out."""

    @property
    @abstractmethod
    def stem(self) -> str:
        """Return what a name is derived from."""

    @abstractmethod
    def may_be_permitted(self, policy: LicensePolicy) -> bool:
        """Say whether the policy could permit anything of it."""


class _Licensed(_Source):
    """A source all of which has one licence, whose writer vouches for it."""

    license: LicenseId
    """SPDX id of the licence of everything in it, or `unknown`; the writer of the file vouches."""

    def may_be_permitted(self, policy: LicensePolicy) -> bool:
        """Say whether the policy permits it."""
        return policy.permits(self.license)


class PythonStdlibSource(_Source):
    """The standard library of the collecting interpreter: real code, on every machine, offline."""

    kind: Literal["python_stdlib"]

    @property
    def license(self) -> str:
        """Return the SPDX id that every document of this source carries."""
        return PYTHON_LICENSE

    @property
    def stem(self) -> str:
        """Return what a name is derived from."""
        return "python_stdlib"

    def may_be_permitted(self, policy: LicensePolicy) -> bool:
        """Say whether the policy permits it."""
        return policy.permits(self.license)


class FolderSource(_Licensed):
    """Files below a folder of the machine that collects: text, code, HTML, PDF, tables and more."""

    kind: Literal["folder"]
    license: LicenseId = PRIVATE_LICENSE
    """SPDX id of the licence of everything in it, or `unknown`; `private`, the default: you wrote
    it yourself, or have it for your own use."""
    path: _Path
    """The folder, absolute or beginning with ~/."""
    glob: _Glob = "**/*"
    """Which files below `path` are taken; ** stands for any folders."""
    exclude: _Globs = ()
    """Of those, the ones that are left out."""
    field: Annotated[str, Field(min_length=1, max_length=256)] = "text"
    """The column or key that holds the text in tables among the files."""
    max_files: _Count = 200_000
    """No more files are looked at."""

    @property
    def stem(self) -> str:
        """Return what a name is derived from."""
        return _last_part(self.path)


class GitSource(_Licensed):
    """The files of a git repository at one commit."""

    kind: Literal["git"]
    url: _GitUrl
    """Where it is cloned from: https, http or file."""
    revision: _Revision = ""
    """A branch, a tag or a whole commit id; empty: the default branch."""
    glob: _Glob = "**/*"
    """Which of its files are taken; ** stands for any folders."""
    exclude: _Globs = ()
    """Of those, the ones that are left out."""
    cluster_depth: _ClusterDepth = 0
    """What is held out together: 0 the repository, 1 each of its topmost folders, and so on."""
    max_files: _Count = 200_000
    """No more files are looked at."""
    timeout_s: Annotated[float, Field(ge=1.0, le=86_400.0)] = 1800.0
    """Longest time a clone may take, in seconds."""
    allow_private_addresses: bool = False
    """May it be cloned from this machine or its local network?"""

    @property
    def stem(self) -> str:
        """Return what a name is derived from."""
        return _last_part(self.url).removesuffix(".git")


class _FromTheWeb(_Source):
    """What is fetched page by page, politely."""

    license: LicenseId = UNKNOWN_LICENSE
    """SPDX id of what its pages are under, where they state none themselves."""
    max_bytes: _Bytes = 1 << 30
    """No further page is fetched once so many bytes were."""
    delay_s: Annotated[float, Field(ge=0.0, le=3600.0)] = 1.0
    """Shortest time between two requests to one host, in seconds; robots.txt may ask for more."""
    timeout_s: Annotated[float, Field(ge=0.1, le=3600.0)] = 60.0
    """Longest time one page may take from the request to its last byte, in seconds."""
    allow_private_addresses: bool = False
    """May it be fetched from this machine or its local network?"""

    def may_be_permitted(self, policy: LicensePolicy) -> bool:
        """Say whether the policy could permit it; pages may state licences of their own."""
        return policy.permits(self.license, "https://")


class WebSource(_FromTheWeb):
    """Pages of the web, found by sitemaps and by following links within bounds."""

    kind: Literal["web"]
    urls: _StartUrls
    """Where the crawl begins."""
    sitemaps: _WebUrls = ()
    """Sitemaps (also indexes of them, also packed with gzip) whose pages are fetched too."""
    within: _WebUrls = ()
    """Only addresses that begin with one of these are fetched; empty: the hosts of `urls`."""
    cluster_depth: _ClusterDepth = 0
    """What is held out together: 0 each host, 1 each topmost folder of a host, and so on."""
    max_pages: _Count = 1000
    """No more pages are fetched."""
    max_depth: Annotated[int, Field(ge=0, le=64)] = 3
    """How many links away from where it began; 0: the given pages alone."""

    @property
    def stem(self) -> str:
        """Return what a name is derived from."""
        return _host(self.urls[0])


class FeedSource(_FromTheWeb):
    """Entries of RSS or Atom feeds, such as arXiv's; each is a document of its own."""

    kind: Literal["feed"]
    urls: _StartUrls
    """The feeds."""
    follow: bool = False
    """Fetch the page that an entry links to; else the entry's own text is the document."""
    max_entries: _Count = 10_000
    """No more entries are taken of one round; what earlier rounds brought is kept."""

    @property
    def stem(self) -> str:
        """Return what a name is derived from."""
        return _host(self.urls[0])


class _Table(_Source):
    """Rows, each of which has a text."""

    field: Annotated[str, Field(min_length=1, max_length=256)] = "text"
    """The column or key that holds the text."""
    license: LicenseId = UNKNOWN_LICENSE
    """SPDX id of rows that state none themselves, or `unknown`."""
    license_field: _Key = ""
    """The column that holds a row's own SPDX id; empty: there is none."""
    cluster_field: _Key = ""
    """The column by which rows are held out together (a site, a book); empty: each by itself."""
    uri_field: _Key = ""
    """The column that says where a row comes from; empty: its number."""
    max_documents: _Count = 1_000_000
    """No more rows are read."""

    def may_be_permitted(self, policy: LicensePolicy) -> bool:
        """Say whether the policy could permit any row."""
        return bool(self.license_field) or policy.permits(self.license)


class HuggingFaceSource(_Table):
    """A data set of Hugging Face, streamed; needs the package datasets."""

    kind: Literal["hugging_face"]
    path: Annotated[
        str,
        Field(
            pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?$",
            max_length=200,
            json_schema_extra={"expected": "an id such as wikimedia/wikipedia"},
        ),
    ]
    """Its id, such as wikimedia/wikipedia."""
    subset: Annotated[str, Field(max_length=200)] = ""
    """Its configuration, such as 20231101.es; empty: the only one."""
    split: Annotated[str, Field(min_length=1, max_length=200)] = "train"
    """Its own split; what is held out for Jupiter is split from it."""
    revision: _Revision = ""
    """A branch, a tag or a commit; empty: the newest."""

    @property
    def stem(self) -> str:
        """Return what a name is derived from."""
        return _last_part(self.path)


class JsonlSource(_Table):
    """Files of JSON with one object on each line, also packed (.gz, .zst)."""

    kind: Literal["jsonl"]
    path: _Path
    """A file, or a folder whose .jsonl and .ndjson files are read."""

    @property
    def stem(self) -> str:
        """Return what a name is derived from."""
        return _last_part(self.path).partition(".")[0]


class ParquetSource(_Table):
    """Parquet files; needs the package pyarrow."""

    kind: Literal["parquet"]
    path: _Path
    """A file, or a folder whose .parquet files are read."""

    @property
    def stem(self) -> str:
        """Return what a name is derived from."""
        return _last_part(self.path).partition(".")[0]


DataSource = Annotated[
    PythonStdlibSource
    | FolderSource
    | GitSource
    | WebSource
    | FeedSource
    | HuggingFaceSource
    | JsonlSource
    | ParquetSource,
    Field(discriminator="kind"),
]


def named(sources: Sequence[DataSource]) -> tuple[DataSource, ...]:
    """Return the sources, each with a name of its own: the given one, or one derived.

    Raises:
        ValueError: two were given the same name.
    """
    given = [source.name for source in sources if source.name]
    twice = sorted({name for name in given if given.count(name) > 1})
    if twice:
        raise ValueError(f"expected a different name for each source, got {twice[0]} twice")
    taken = set(given)
    found: list[DataSource] = []
    for source in sources:
        name = source.name or _free_name(source.stem, taken)
        taken.add(name)
        found.append(source.model_copy(update={"name": name}))
    return tuple(found)


def _free_name(stem: str, taken: set[str]) -> str:
    lower = unicodedata.normalize("NFC", stem).lower()
    name = re.sub(r"[^\w.]+", "-", lower).strip("-._")[: MAX_NAME_CHARS - 4] or "source"
    number = 1
    found = name
    while found in taken:
        number += 1
        found = f"{name}-{number}"
    return found


def _last_part(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _host(url: str) -> str:
    return re.sub(r"^https?://([^/?#]*).*$", r"\1", url)
