"""The loops that a daemon runs as long as it serves.

Owns which there are, and what each is given. Doesn't know what they do.
"""

from collections.abc import Coroutine, Iterator
from functools import partial
from typing import TYPE_CHECKING

from jupiterd.daemon.app.on_ledger_change import follow_ledger
from jupiterd.daemon.app.serving_wiring import keep_serving
from jupiterd.daemon.artifacts.disk_pressure import DiskPressure
from jupiterd.daemon.artifacts.model_publisher import ModelPublisher
from jupiterd.daemon.artifacts.retention import Retention
from jupiterd.daemon.leader.re_replication import ReReplication
from jupiterd.daemon.links.address_book import keep_addresses
from jupiterd.daemon.membership.stability_monitor import watch_stability
from jupiterd.daemon.membership.trust import grant_standing_trust
from jupiterd.daemon.membership.version_guard import VersionGuard, watch_versions
from jupiterd.daemon.queries.cycle.round_table_file import RoundTableFile
from jupiterd.ids import NodeId
from jupiterd.ports import Discovery

if TYPE_CHECKING:
    from jupiterd.daemon.app.wiring import Parts

Task = tuple[str, Coroutine[object, object, None]]
"""Its name in the log, and what is run."""


def tasks_of(node: "Parts", discovery: Discovery) -> Iterator[Task]:
    """Yield them; each runs until it is cancelled."""
    yield from _of_links(node, discovery)
    yield from _of_membership(node)
    yield from _of_artifacts(node)
    yield "ledger", follow_ledger(node)
    yield "compaction", node.replica.keep_compact()
    yield "round table", RoundTableFile(node.replica, node.state_dir.round_table).run()
    yield "outlook", node.observers.run()
    yield "cluster file", node.file_policy.run()
    yield "scripts", node.running_scripts.watch()
    if node.serving_plan is not None:
        yield "models that are served", keep_serving(node.endpoints, node.serving_plan)


def _of_links(node: "Parts", discovery: Discovery) -> Iterator[Task]:
    yield "discovery", node.handshake.follow(discovery)
    yield "handshake", node.handshake.run()
    yield "heartbeats", node.heartbeats.run()
    yield "paths", node.path_monitor.run()
    yield "addresses", keep_addresses(node.state_dir.peers, node.peers.paths)


def _of_membership(node: "Parts") -> Iterator[Task]:
    versions = version_guard_of(node)
    steadiness = watch_stability(
        node.heartbeats, node.settings, versions.is_of_most, lambda: node.hand_over.is_trusted
    )
    yield "steadiness", steadiness
    yield "versions", watch_versions(versions, lambda: node.leading is not None, node.step_aside)
    because = partial(reason_given, node)
    yield "standing yes", grant_standing_trust(node.replica, because, node.commands.execute)


def _of_artifacts(node: "Parts") -> Iterator[Task]:
    yield "models", ModelPublisher(node.replica, node.artifact_cache, node.exports).run()
    yield "upkeep", ReReplication(node.heartbeats.alive, lambda: node.leading).run()
    yield "retention", retention_of(node).run()


def version_guard_of(node: "Parts") -> VersionGuard:
    """Return the guard of the versions that run here."""
    return VersionGuard(
        node.hardware.program,
        node.replica,
        node.heartbeats.alive,
        node.local_view.hardware_of,
        node.file_policy.roles,
    )


def retention_of(node: "Parts") -> Retention:
    """Return what gives up artifacts on this node, by its settings."""
    own = node.identity.node_id
    little_room = DiskPressure(
        node.replica, node.artifact_cache, lambda: node.heartbeats.alive() - {own}
    )
    rounds = node.settings.rounds_kept
    store = node.artifact_cache.store
    made = Retention(node.replica, store, node.state_dir, rounds, little_room, node.shipped)
    parts = node.worker_runner.old_parts
    made.kept_parts = lambda: parts.kept
    return made


def reason_given(node: "Parts", member: NodeId) -> str:
    """Return where people said yes to a machine beforehand; empty where they didn't."""
    if node.settings.trust_lan:
        return "--trust-lan"
    return "cluster.yaml" if node.file_policy.says_yes_to(member) else ""
