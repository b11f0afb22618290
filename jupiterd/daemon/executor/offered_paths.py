"""What of this machine's disk work may read: consent is checked where the work is done.

Owns that decision and the file of paths requested here, which is no part of the ledger: a path
counts that was named on this machine's own control socket, word for word, or that lies below a
folder of its settings. Wherever a path leads is what is looked at, so no link and no `..` gets out.
Doesn't know what is read, or why.
"""

import json
import logging
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

from jupiterd.cluster.facts.facts import NodeAdmitted
from jupiterd.cluster.health.alerts import AlertCondition
from jupiterd.cluster.planning.asking_node import ASKED_AT
from jupiterd.cycle.data.local_paths import folder_around, hub_names, local_paths
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.daemon.runtime.untrusted_input import sanitized_text
from jupiterd.daemon.runtime.work_events import WorkOrder
from jupiterd.errors import NotOfferedError
from jupiterd.formats import counted
from jupiterd.ids import NodeId, short
from jupiterd.path_text import path_of
from jupiterd.store.disk import sync_file, written

log = logging.getLogger(__name__)

CODE: Final = "not-offered"
"""Of the alarm."""

REPORTED_S: Final = 3600.0
"""How long health reports a refusal."""

MAX_REQUESTED: Final = 4096
"""Number of requested paths stored, the latest."""

MAX_SHOWN: Final = 200
"""Characters of a path, in words."""


class OfferedPaths:
    """Which paths of this machine may be read for others, and who was refused."""

    def __init__(self, file: Path, folders: Sequence[Path]) -> None:
        """`file` stores the paths requested here; the folders are those of the settings."""
        self._file = file
        self._folders = folders
        self._requested = _load(file)
        """Path as it was named -> where it led then."""
        self._refused: dict[tuple[str, str], float] = {}
        """(path, requesting node) -> time of the refusal."""
        self._writing, self._noting = threading.Lock(), threading.Lock()
        """Commands and work ask from threads; nothing on the event loop waits for a disk."""

    def ask(self, paths: Iterable[str]) -> None:
        """Record on disk that somebody on this machine has requested these paths.

        Raises:
            DiskFullError: there is no room to write that down.
            StateDirError: it can't be written for another reason.
        """
        found = {path: _real(path) for path in paths}
        with self._writing:
            if any(self._requested.get(path) != real for path, real in found.items()):
                others = {path: real for path, real in self._requested.items() if path not in found}
                self._write(dict(list((others | found).items())[-MAX_REQUESTED:]))

    def _write(self, requested: dict[str, str]) -> None:
        draft = self._file.with_suffix(".new")
        with written():
            draft.write_text(json.dumps({"paths": requested}))
            sync_file(draft)
            draft.replace(self._file)
        self._requested = requested  # only what is written down holds

    def check(self, task: str, params: Mapping[str, Any], asker: str, own: str) -> None:
        """Refuse work that would read a path nobody here has requested or offers.

        Args:
            task: what is to be done.
            params: its parameters, as they came.
            asker: the name of who orders it.
            own: the name of this node.

        Raises:
            NotOfferedError: it would.
        """
        around = folder_around(task, params)
        for path in _read_by(task, params):
            if not any(map(self._is_offered, (path, *around))):
                self._note(path, asker)
                raise NotOfferedError(
                    f"{own} doesn't read {path[:MAX_SHOWN]} for {asker}: nobody on {own} has asked "
                    "for it, and no readable folder holds it",
                    _remedy(path, own, is_hub_name=path in hub_names(task, params)),
                )

    def findings(self, node: NodeId, own: str) -> Iterator[AlertCondition]:
        """Yield a health finding of the last hour's refusals: the latest, and how many more."""
        since_s = now_s() - REPORTED_S
        with self._noting:
            latest = {key: at_s for key, at_s in self._refused.items() if at_s >= since_s}
            self._refused = dict(latest)
        if latest:
            path, asker = max(latest, key=latest.__getitem__)
            others = len(latest) - 1
            more = f", and {counted(others, 'other path')}" if others else ""
            text = f"{path[:MAX_SHOWN]} for {asker}{more}"
            yield AlertCondition(CODE, node, own, text, cause=str(latest[path, asker]))

    def _is_offered(self, path: str) -> bool:
        real = _real(path)
        is_below = (Path(real).is_relative_to(os.path.realpath(each)) for each in self._folders)
        return bool(real) and (self._requested.get(path) == real or any(is_below))

    def _note(self, path: str, asker: str) -> None:
        fields = {"path": path[:MAX_SHOWN], "asked_by": asker}
        log.warning("path_not_offered", extra=fields)
        with self._noting:
            if len(self._refused) >= MAX_REQUESTED:
                self._refused.clear()
            self._refused[path[:MAX_SHOWN], asker] = now_s()


def requester(order: WorkOrder, members: Mapping[NodeId, NodeAdmitted]) -> str:
    """Return who wants an order done, by name: who gave the command, and who led.

    Only who led is certain, by its key; the command's giver is as that one says.
    """
    leader = _name(order.ordered_by, members)
    node_id = order.params.get(ASKED_AT)
    commander = _name(NodeId(node_id), members) if isinstance(node_id, str) and node_id else leader
    return leader if commander == leader else f"{commander} (ordered by {leader})"


def _name(node: NodeId | None, members: Mapping[NodeId, NodeAdmitted]) -> str:
    if node is None:
        return "nobody"
    admitted = members.get(node)
    return sanitized_text(short(node) if admitted is None else admitted.name)


def _read_by(task: str, params: Mapping[str, Any]) -> Iterator[str]:
    yield from local_paths(task, params)
    # The hub's client prefers a folder of that name below the working folder.
    yield from (name for name in hub_names(task, params) if os.path.lexists(name))


def _remedy(path: str, own: str, *, is_hub_name: bool) -> str:
    """Return what would have it read; the settings take whole paths only."""
    shown = path[:MAX_SHOWN]
    if is_hub_name:
        return (
            f"a folder of that name in the state folder of {own} hides the data set of the hub: "
            f"rename {shown} there"
        )
    if not _real(path):
        return f"name it in full, as it is called on {own}, from / on"
    return f"type the command on {own}, or add to its jupiter.yaml: readable_folders: [{shown}]"


def _real(path: str) -> str:
    """Return where a path leads; empty where it isn't a whole one, or can't be followed."""
    try:
        found = path_of(path)
        return os.path.realpath(found) if found.is_absolute() else ""
    except (OSError, ValueError):
        return ""


def _load(file: Path) -> dict[str, str]:
    try:
        document = cast("Mapping[str, Any]", json.loads(file.read_text()))
        return {str(path): str(real) for path, real in dict(document["paths"]).items()}
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return {}
