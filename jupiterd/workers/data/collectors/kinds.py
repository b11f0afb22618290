"""Which collector reads which kind of data source.

Owns the table of kinds. A new kind is a class in `cycle.domain.data_sources`, a file beside this
one, and its line here. Doesn't know how anything is read.
"""

from collections.abc import Callable, Mapping
from importlib import import_module

from jupiterd.cycle.domain.data_sources import DataSource
from jupiterd.workers.data.collectors.collector import Collector

_PACKAGE = __name__.rpartition(".")[0]

_KINDS: Mapping[str, str] = {
    "python_stdlib": "python_stdlib:PythonStdlib",
    "folder": "folder:Folder",
    "git": "git:GitRepository",
    "web": "web:Site",
    "feed": "feed:Feeds",
    "hugging_face": "hugging_face:HuggingFace",
    "jsonl": "jsonl:Jsonl",
    "parquet": "parquet:Parquet",
}
"""Kind -> the module beside this one and its class, which takes the source as the file says."""

BY_FILES = frozenset({"hugging_face"})
"""Kinds of which a part is told by its number; of the others it is a source by itself."""


def open_collector(source: DataSource, part: tuple[int, int] | None = None) -> Collector:
    """Return the collector for a domain's data source; only its own libraries are imported.

    part: (number, of how many), where a part of the source is read
    """
    module, name = _KINDS[source.kind].split(":")
    found: Callable[..., Collector] = getattr(import_module(f"{_PACKAGE}.{module}"), name)
    return found(source, part) if source.kind in BY_FILES else found(source)
