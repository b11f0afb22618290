"""Ending an alarm that people have seen: the command that does it.

Owns its checks and what it records; it runs at the leader. Doesn't know what is raised
(`cluster.alert_news`), or who is told.
"""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jupiterd.cluster.cycle_state import CycleState
from jupiterd.cluster.island_runs import is_whole
from jupiterd.cluster.lifecycle_facts import FailureDismissed
from jupiterd.cluster.planning.asking_node import ASKED_AT
from jupiterd.cluster.run_names import Named, meant
from jupiterd.daemon.member_commands import Arguments, Command
from jupiterd.errors import NotFoundError
from jupiterd.ids import CycleId, NodeId, short

if TYPE_CHECKING:
    from jupiterd.daemon.leading import Leading

log = logging.getLogger(__name__)


async def dismiss(leading: "Leading", arguments: Arguments) -> dict[str, Any]:
    """End the alarm about a cycle, a run or a data set that failed, or all such alarms.

    It stays failed, and is told of again if it goes on and fails once more.

    Raises:
        NotFoundError: nothing failed that nobody has seen, or not that one.
        UsageError: several ids begin so.
    """
    wanted, failed = str(arguments.get("cycle") or ""), _unseen(leading)
    if not failed:
        raise NotFoundError("there is no alarm about anything that failed", "jupiterctl status")
    named = [Named(each, cycle.label, [each]) for each, cycle in failed.items()]
    found = meant(named, wanted) if wanted else list(failed)
    if not found:
        raise NotFoundError(f"nothing that failed is called {wanted}", "jupiterctl status")
    asked_at = NodeId(str(arguments.get(ASKED_AT) or leading.self_id))
    await leading.record(*(FailureDismissed(each, asked_at) for each in found))
    by = leading.names().get(asked_at, short(asked_at))
    for each in found:
        log.info("alarm_dismissed", extra={"cycle": each, "what": failed[each].label, "by": by})
    return {"dismissed": [{"id": each, "name": failed[each].label} for each in found]}


def _unseen(leading: "Leading") -> dict[CycleId, CycleState]:
    """Return what failed and nobody has seen."""
    return {
        name: each
        for name, each in leading.journal.state.cycles.items()
        if each.begun is not None
        and is_whole(each)
        and each.failed is not None
        and not each.lifecycle.is_dismissed
    }


COMMANDS: Mapping[str, Command] = {"cycle.dismiss": dismiss}
