"""The paths that an order names of the disk of whoever does it, told by its task and parameters.

Owns which parameters are paths. Pure: no disk is looked at. Doesn't know who may read them
(`daemon.executor.offered_paths`), or how they are read.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast
from urllib.parse import unquote

from jupiterd.cycle.base.globs import lone_name

FILE_URL: Final = "file://"

_WITHOUT_DISK: Final = frozenset({"python_stdlib", "web", "feed"})
_is_hub_name = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?").fullmatch
_is_of_the_web = re.compile(r"https?://").match


def local_paths(task: str, params: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what work of that task reads of the disk; what isn't known to be none is a path."""
    if task == "collect":
        source = _mapping(params.get("source"))
        return _lone_file(source) or _of_source(source)
    if task == "prepare":
        return (*_of_source(params), *_texts_of(params.get("tokenizer_path")))
    return ()


def folder_around(task: str, params: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the folder in which a lone file is looked for: who offered all of it, offered it."""
    source = _mapping(params.get("source")) if task == "collect" else {}
    return _of_source(source) if _lone_file(source) else ()


def hub_names(task: str, params: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the data sets of the hub that it reads; a folder of that name would come first."""
    source = {"collect": _mapping(params.get("source")), "prepare": params}.get(task, {})
    is_of_hub = source.get("kind") == "hugging_face"
    return tuple(filter(_is_hub_name, _texts_of(source.get("path")))) if is_of_hub else ()


def paths_of_sources(sources: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the paths that the sources of a domain name."""
    return tuple(path for source in sources for path in local_paths("collect", {"source": source}))


def _lone_file(source: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the one file of a folder that its glob takes; nothing where there may be more."""
    path, glob = source.get("path"), source.get("glob")
    if source.get("kind") != "folder" or not (isinstance(path, str) and isinstance(glob, str)):
        return ()
    name = lone_name(glob)
    return (f"{path.rstrip('/')}/{name}",) if path and name else ()


def _of_source(source: Mapping[str, Any]) -> tuple[str, ...]:
    kind = source.get("kind")
    if not source or kind in _WITHOUT_DISK:
        return ()
    if kind == "git":
        return tuple(
            f"/{unquote(url.removeprefix(FILE_URL)).lstrip('/')}"
            for url in _texts_of(source.get("url"))
            if not _is_of_the_web(url)
        )
    found = _texts_of(source.get("path"))
    return tuple(p for p in found if not (kind == "hugging_face" and _is_hub_name(p)))


def _texts_of(value: object) -> tuple[str, ...]:
    """Return a value as it would be read as text; nothing where there is none."""
    if isinstance(value, bytes):
        return (value.decode("utf-8", "replace"),)
    return (str(value),) if value else ()


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
