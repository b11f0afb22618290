"""The document of `jupiterctl status --settings`: this daemon's settings and their sources.

Owns its keys, and what of a setting may be shown. Doesn't know where a setting is looked for
(`settings`).
"""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from jupiterd.cluster.planning.cluster_file_policy import ClusterFile
from jupiterd.daemon.runtime.settings import Settings
from jupiterd.daemon.runtime.webhook import HIDDEN
from jupiterd.document_schema import SCHEMA

SECRETS = frozenset({"join"})
"""Whoever has one may do what its owner may; an address that is one hides itself."""


def settings_document(settings: Settings, taken_from: Mapping[str, str]) -> dict[str, Any]:
    """Return each setting: its name, its value as JSON has it, and where it was taken from.

    taken_from: the name of a setting -> where its value comes from; the rest are defaults
    """
    rows = [
        {
            "name": each.name,
            "value": _shown(each.name, getattr(settings, each.name)),
            "source": taken_from.get(each.name, "default"),
        }
        for each in fields(Settings)
    ]
    return {"schema": SCHEMA, "settings": rows}


def _shown(name: str, value: object) -> object:
    if name in SECRETS:
        return HIDDEN if value else ""
    match value:
        case ClusterFile():
            return value.file or None
        case tuple():
            return [str(part) for part in value]
        case Path():
            return str(value.absolute())
        case None | bool() | int():
            return value
        case _:
            return str(value)
