"""Checkpoints that found no room on a disk, while training goes on.

Owns what people are told of them, and when that is over. Doesn't know what a checkpoint is.
"""

import logging

from jupiterd.daemon.leader.machines import Machines
from jupiterd.daemon.leader.progress_board import ProgressBoard
from jupiterd.errors import DiskFullError
from jupiterd.ids import CycleId, NodeId, short

log = logging.getLogger(__name__)


class CheckpointAlarm:
    """Rings as long as the newest checkpoint of a round wasn't kept."""

    def __init__(self, board: ProgressBoard, machines: Machines, cycle: CycleId) -> None:
        self._board, self._machines = board, machines
        self._cycle = cycle
        self._why: DiskFullError | None = None

    def ring(self, step: int, message: str, node: NodeId | None = None) -> None:
        """Tell people that the checkpoint of a step wasn't kept, and on which machine."""
        who = "" if node is None else f"{self._machines.names().get(node, short(node))}: "
        self._why = DiskFullError(f"{who}{message}")
        log.warning("checkpoint_unsaved", extra={"step": step, "reason": self._why.message})
        detail = f"{self._why.message}; training goes on without the checkpoint of step {step}"
        self._board.explain(self._cycle, detail)

    def over(self) -> None:
        """Take it back: a later checkpoint was kept."""
        if self._why is not None:
            self._why = None
            self._board.explain(self._cycle, "")

    def check(self) -> None:
        """Raise it where nothing comes after: what was trained since is to be trained again."""
        why, self._why = self._why, None
        if why is not None:
            raise why
