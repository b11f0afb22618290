"""Taking this machine out of its cluster, with all that it knows, into a cluster of its own.

Owns the command and the ledger that such a cluster begins with. Doesn't know what is taken along
(`cluster.cluster_merge`), or how a ledger lies on disk (`replica`).

It is for machines whose cluster has nobody left who may say yes. Whoever can type on this machine
decides for it alone: nothing changes in the cluster that it leaves, and nobody follows it.
"""

import logging
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jupiterd.cluster.facts.facts import (
    ClusterFounded,
    Fact,
    NodeAdmitted,
    PairingWindowLocked,
    PairingWindowSet,
)
from jupiterd.cluster.ledger.cycle_state import RUNNING
from jupiterd.cluster.ledger.entry import EntryWriter, compose, parse, seal
from jupiterd.cluster.ledger.island_runs import is_whole
from jupiterd.cluster.ledger.ledger import Ledger
from jupiterd.cluster.membership.admission import Summary
from jupiterd.cluster.membership.cluster_merge import in_entries, taken_along
from jupiterd.daemon.commands.member_commands import MAX_LABEL_CHARACTERS
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.daemon.ledger.snapshot_transfer import FetchedSnapshot
from jupiterd.daemon.membership.join_client import JoinClient
from jupiterd.errors import ConflictError
from jupiterd.ids import ClusterId, short
from jupiterd.net.identity import Identity
from jupiterd.protocol.commands.member_commands import LeaveCluster

if TYPE_CHECKING:
    from jupiterd.cluster.ledger.state import State

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Leaving:
    """What of this daemon has a part in leaving."""

    identity: Identity
    name: str
    """Of this machine."""
    replica: Replica
    joining: JoinClient
    summary: Callable[[], Summary]


async def leave(here: Leaving, command: LeaveCluster) -> dict[str, Any]:
    """Let this machine found a cluster of its own that knows all work, or with `dry_run` say so.

    Raises:
        ConflictError: it is alone already, or work is running.
    """
    replica, own = here.replica, here.identity.node_id
    state, before = replica.state, here.summary()
    others = [fact.name for member, fact in sorted(state.members.items()) if member != own]
    if not others and own in state.members:
        raise ConflictError(f"this machine is the only one of {before.title}", "jupiterctl status")
    _check_that_nothing_runs(state)
    document = {
        "left": {"id": before.cluster, "name": before.label, "nodes": others},
        "cycles": sum(cycle.begun is not None for cycle in state.cycles.values()),
    }
    if command.dry_run:
        return {"done": False, **document, "founded": None}
    label = here.name[:MAX_LABEL_CHARACTERS]
    await replica.start_new_cluster(
        lambda ledger: founded_by(here.identity, label, here.name, ledger)
    )
    here.joining.token = None  # it is of the cluster that was left
    log.info("left_cluster", extra={"before": short(before.cluster)})
    here.joining.moved(own, replica.cluster)
    return {"done": True, **document, "founded": {"id": replica.cluster, "name": label}}


def founded_by(identity: Identity, label: str, name: str, before: Ledger) -> FetchedSnapshot:
    """Return the ledger of a new cluster, of this node alone, with all work of another one."""
    ledger = Ledger(ClusterId(secrets.token_hex(16)))
    fetched = FetchedSnapshot(ledger, identity.node_id)
    writer, term = (
        EntryWriter(identity.node_id, secrets.token_hex(8)),
        max(1, before.highest_term()),
    )
    own = NodeAdmitted(identity.node_id, name, identity.certificate_pem, "it founded the cluster")
    first = [
        ClusterFounded(label),
        own,
        PairingWindowSet(is_open=False, edit=1),
        PairingWindowLocked(()),
    ]
    for facts in (first, *in_entries(taken_along(before.state))):
        fetched.entries.append(_written(identity, ledger, writer, term, facts))
    return fetched


def _written(
    identity: Identity, ledger: Ledger, writer: EntryWriter, term: int, facts: Sequence[Fact]
) -> bytes:
    index, previous = ledger.chain_end(writer)
    body = compose(ledger.cluster, term, writer, index, previous, facts)
    entry = parse(seal(body, identity.sign(body)))
    ledger.add(entry)
    return entry.raw


def _check_that_nothing_runs(state: "State") -> None:
    """Raise ConflictError where something does: two clusters would go on with it."""
    for cycle in state.cycles.values():
        if cycle.begun is None or cycle.has_nothing_to_do or not is_whole(cycle):
            continue
        if cycle.wanted == RUNNING:
            raise ConflictError(
                f"{cycle.label} is running, and would go on in both clusters",
                "pause or stop it first: jupiterctl cycle pause, or jupiterctl train stop",
            )
