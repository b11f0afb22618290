"""The health warnings of the cluster, each with a hint of what to do.

Owns the table of warnings and the condition of each. Doesn't know which screen shows them.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from jupiterd.cluster.links.own_link import Outage
from jupiterd.cluster.links.unreached import Unreached, diagnoses
from jupiterd.cluster.membership.admission import OPEN_COMMAND
from jupiterd.cluster.membership.approval import approve_command
from jupiterd.cluster.membership.call_rights import trust_command
from jupiterd.cluster.membership.failure_detector import Liveness
from jupiterd.cluster.planning.roles import MISSING_ENGINE
from jupiterd.cluster.values.node_names import distinct_names
from jupiterd.cluster.values.severity import Severity
from jupiterd.cluster.values.version_groups import difference
from jupiterd.ids import NodeId, short


@dataclass(frozen=True)
class HealthWarning:
    """A warning in one line for the user, with a hint of what to do."""

    code: str
    severity: Severity
    title: str
    hint: str
    about: str = ""
    """A lasting name of its subject: a node's id, or a line of a file; empty: this node."""

    @property
    def key(self) -> str:
        """The identity of this warning, independent of the wording of its title."""
        return f"{self.code}:{self.about}"


@dataclass(frozen=True)
class NodeView:
    """One member as this node sees it."""

    node: NodeId
    name: str
    liveness: Liveness
    engines: tuple[str, ...] = ()
    """The engines installed there, as far as this node knows them."""
    program: str = ""
    """The version of Jupiter there; empty: unknown."""
    cloned_at: tuple[str, ...] = ()
    """Addresses of the machines that use its key; empty where there is one."""


@dataclass(frozen=True)
class WaitingView:
    """A newcomer that waits to be let in."""

    node: NodeId
    name: str
    words: str
    """Words to compare with those on the newcomer's own screen."""


@dataclass(frozen=True)
class ClusterView:
    """The input of `judge`: the cluster as this node sees it."""

    leader: NodeId | None
    nodes: tuple[NodeView, ...]
    """All members, this node included."""
    pending_reason: str = ""
    """Why this node waits outside a closed cluster; empty: it doesn't."""
    wanted_cluster: str = ""
    """The cluster that this node looks for and hasn't found; empty: it looks for none."""
    pending_command: str = OPEN_COMMAND
    """The command to run on a member so that it lets this node in."""
    waiting: tuple[WaitingView, ...] = ()
    """Newcomers that wait for approval."""
    clone_at: str = ""
    """The address of another machine with this node's key; empty: there is none."""
    is_removed: bool = False
    """This node is no longer a member."""
    trusts_lan: bool = False
    """This node admits every newcomer on its network."""
    contradictions: tuple[str, ...] = ()
    """Entries of this machine's cluster file that contradict a measurement."""
    without_effect: tuple[str, ...] = ()
    """Entries of that file that have no effect, each with the reason."""
    disk_trouble: str = ""
    """Why this node can't write to its disk; empty: it can."""
    is_local: bool = False
    """This node's settings limit discovery to daemons of its own machine."""
    walked_in: tuple[NodeId, ...] = ()
    """Members that joined without a person's approval."""
    approving_machines: str = ""
    """The machines on which a person may approve those members."""
    behind: tuple[NodeId, ...] = ()
    """Members of `walked_in` that hold facts which this node lacks and may not load from them."""
    has_token: bool = False
    """A join token names the cluster that this node wants to join."""
    shared_addresses: tuple[tuple[str, str, str], ...] = ()
    """(address, name, name): addresses that two machines announce as their own."""
    unreached: tuple[Unreached, ...] = ()
    """Addresses that discovery or the settings name and this node can't reach."""
    unreached_by: tuple[tuple[NodeId, tuple[Unreached, ...]], ...] = ()
    """The same, as other members report them."""
    clocks: tuple[tuple[str, str], ...] = ()
    """(node, text): nodes whose clock is wrong."""
    outage: Outage | None = None
    """Why this node reaches no other node, if the cause is its own link."""


@dataclass(frozen=True)
class _Row:
    severity: Severity
    title: str
    """It may contain {subject}."""
    hint: str
    """It may contain {command}."""


TABLE: Mapping[str, _Row] = {
    "clone": _Row(
        Severity.ERROR,
        "another machine uses this node's key: {subject}",
        "delete key.pem in the state folder of one of them, and start both again",
    ),
    "removed": _Row(
        Severity.ERROR,
        "this node was removed from its cluster",
        "to let it join again, start it with a new state folder: jupiterd --state-dir DIR",
    ),
    "disk": _Row(
        Severity.ERROR,
        "this node can't write: {subject}",
        "free some space; the work goes on from where it stopped",
    ),
    "link-out": _Row(
        Severity.WARNING,
        "this machine's {subject}: it reaches no other",
        "{command}",
    ),
    "no-leader": _Row(
        Severity.ERROR,
        "nobody leads the cluster yet: an election is under way",
        "it takes about three seconds; if it lasts, check the network between the nodes",
    ),
    "pending-node": _Row(
        Severity.WARNING,
        "this node waits to be let in: {subject}",
        "run on any member: {command}",
    ),
    "sought": _Row(
        Severity.WARNING,
        "this node looks for the cluster of its join token: {subject}",
        "start jupiterd on a member of it in this network, or name one with --peer HOST:PORT",
    ),
    "behind": _Row(
        Severity.WARNING,
        "this node lacks what the cluster has recorded: {subject} alone has it, and walked in",
        "start jupiterd on {command}, or say yes to it there: what a machine sums up counts then",
    ),
    "no-engine": _Row(
        Severity.ERROR,
        "no node that is alive has a machine learning library installed",
        MISSING_ENGINE.partition(": ")[2],
    ),
    "trusts-lan": _Row(
        Severity.WARNING,
        "whoever is on this network may join while this node leads",
        "start it without --trust-lan, and let machines in with: jupiterctl cluster open",
    ),
    "contradiction": _Row(
        Severity.WARNING,
        "{subject}",
        "what is measured counts: correct the file, or look into that machine or its cable",
    ),
    "clone-of-member": _Row(
        Severity.ERROR,
        "two machines use {subject}",
        "a state folder was copied: on the copy delete key.pem in it, and start jupiterd again; "
        "once only one of them runs, that one goes on by itself",
    ),
    "node-gone": _Row(
        Severity.WARNING,
        "{subject} is gone",
        "wake it or start jupiterd on it; the cluster carries on without it",
    ),
    "node-suspect": _Row(
        Severity.WARNING,
        "{subject} doesn't answer",
        "it gets no new work until it does; check its network and whether it sleeps",
    ),
    "shared-address": _Row(
        Severity.WARNING,
        "{subject}",
        "give one of them another address: look for fixed ones, and at what the router gives out",
    ),
    "clock-differs": _Row(
        Severity.WARNING,
        "{subject}",
        "times in logs, events and reports are wrong there (no decision is): "
        "sudo timedatectl set-ntp true (macOS: sudo sntp -sS time.apple.com)",
    ),
    "tcp-silent": _Row(Severity.WARNING, "{subject}", "{command}"),
    "tcp-blocked": _Row(Severity.WARNING, "{subject}", "{command}"),
    "version-differs": _Row(
        Severity.WARNING,
        "{subject}",
        "{command}",
    ),
    "node-waits": _Row(
        Severity.INFO,  # a stranger doesn't make a cluster ill
        "{subject}",
        "if the new machine shows the same words: {command}",
    ),
    "peer-unreached": _Row(
        Severity.INFO,  # a machine that is named may be switched off for long
        "{subject}",
        "{command}",
    ),
    "node-walked-in": _Row(
        Severity.INFO,  # it works as any other; whose it is, people know
        "{subject} walked in through the open door",
        "if it is yours, say yes, so that it may approve, remove, merge, purge, promote and bring "
        "scripts; {command}",
    ),
    "no-effect": _Row(
        Severity.INFO,
        "{subject}",
        "leave it, or take it out of the file",
    ),
    "alone": _Row(
        Severity.INFO,
        "this node is alone in its cluster",
        "start jupiterd on another machine in the same network, or name one with --peer HOST:PORT",
    ),
    "pending-locally": _Row(
        Severity.INFO,
        "another cluster on this machine lets nobody in by itself: {subject}",
        "nothing to do for a cluster of your own; to join that one, run on any member: {command}",
    ),
    "alone-locally": _Row(
        Severity.INFO,
        "this node is alone, and keeps to this machine (--local)",
        "start it without --local to find others; or another one here: "
        "jupiterd --local --port 0 --state-dir OTHER",
    ),
}
"""Every warning by its code, the gravest causes first."""

_OF_LIVENESS = {Liveness.GONE: "node-gone", Liveness.SUSPECT: "node-suspect"}


def judge(view: ClusterView) -> list[HealthWarning]:
    """Return the warnings that apply, in the order of TABLE; empty if all is well."""
    rank = {code: position for position, code in enumerate(TABLE)}
    found = sorted(_findings(view), key=lambda finding: (rank[finding.code], finding.subject))
    return [_warning(finding) for finding in found]


@dataclass(frozen=True)
class _Finding:
    code: str
    subject: str
    command: str = ""
    about: str = ""


def _findings(view: ClusterView) -> Iterator[_Finding]:
    yield from (finding for finding, holds in _of_this_node(view) if holds)
    alive = [node for node in view.nodes if node.liveness is Liveness.ALIVE]
    if alive and not any(node.engines for node in alive):
        yield _Finding("no-engine", "")
    names = distinct_names({node.node: node.name for node in (*view.nodes, *view.waiting)})
    cut_off: frozenset[NodeId] = frozenset()
    if view.outage is not None:
        cut_off = view.outage.cut_off
        yield _Finding("link-out", view.outage.cause, view.outage.hint)
    for node in view.nodes:
        if node.cloned_at:
            detail = f"{names[node.node]}'s key: {' and '.join(node.cloned_at)}"
            yield _Finding("clone-of-member", detail, about=node.node)
        elif node.liveness in _OF_LIVENESS and node.node not in cut_off:
            yield _Finding(_OF_LIVENESS[node.liveness], names[node.node], about=node.node)
    yield from _of_guests(view, names)
    yield from _of_versions(view, alive)
    for address, one, other in view.shared_addresses:
        title = f"{one} and {other} both have the address {address}"
        yield _Finding("shared-address", title, about=f"{one} {other}")
    yield from (_Finding("clock-differs", title, about=whose) for whose, title in view.clocks)
    if view.outage is None:
        yield from _of_unreached(view, names)
    yield from (_Finding("contradiction", line, about=line) for line in view.contradictions)
    yield from (_Finding("no-effect", line, about=line) for line in view.without_effect)
    for newcomer in view.waiting:
        subject = f"{newcomer.name} ({short(newcomer.node)}) waits to be let in: {newcomer.words}"
        is_one = names[newcomer.node] == newcomer.name
        command = approve_command(newcomer.name if is_one else "", newcomer.node)
        yield _Finding("node-waits", subject, command, newcomer.node)


def _of_unreached(view: ClusterView, names: Mapping[NodeId, str]) -> Iterator[_Finding]:
    """Yield the addresses that this node can't reach, and those that only another member can't."""
    yield from (_Finding(it.code, it.title, it.hint) for it in diagnoses(view.unreached))
    own = {each.address for each in view.unreached}
    for node, reports in view.unreached_by:
        for it in diagnoses([each for each in reports if each.address not in own]):
            title = f"{it.title}, says {names.get(node, short(node))}"
            yield _Finding(it.code, title, it.hint, node)


def _of_guests(view: ClusterView, names: Mapping[NodeId, str]) -> Iterator[_Finding]:
    """Yield the findings about members that joined without approval."""
    for node in view.walked_in:
        command = f"run on {view.approving_machines}: {trust_command(names[node])}"
        yield _Finding("node-walked-in", names[node], command, about=node)
    for node in view.behind:
        yield _Finding("behind", names.get(node, short(node)), view.approving_machines, node)


def _of_versions(view: ClusterView, alive: Iterable[NodeView]) -> Iterator[_Finding]:
    """Yield the findings about members that run another version than the leader."""
    leaders = next((node.program for node in view.nodes if node.node == view.leader), "")
    for node in alive:
        title, hint = difference(node.name or short(node.node), node.program, leaders)
        if title:
            yield _Finding("version-differs", title, hint, node.node)


def _of_this_node(view: ClusterView) -> tuple[tuple[_Finding, bool], ...]:
    """Return each finding about this node, and whether it applies."""
    is_alone = len(view.nodes) == 1 and not (
        view.is_removed or view.wanted_cluster or view.unreached
    )
    is_by_chance = view.is_local and not view.has_token  # whose cluster it is doesn't matter to it
    pending_code = "pending-locally" if is_by_chance else "pending-node"
    pending = _Finding(pending_code, view.pending_reason, view.pending_command)
    return (
        (_Finding("clone", view.clone_at), bool(view.clone_at)),
        (_Finding("removed", ""), view.is_removed),
        (_Finding("disk", view.disk_trouble), bool(view.disk_trouble)),
        (_Finding("no-leader", ""), view.leader is None),
        (_Finding("sought", view.wanted_cluster), bool(view.wanted_cluster)),
        (pending, bool(view.pending_reason)),
        (_Finding("trusts-lan", ""), view.trusts_lan),
        # With none at all this one is still starting.
        (_Finding("alone-locally" if view.is_local else "alone", ""), is_alone),
    )


def _warning(finding: _Finding) -> HealthWarning:
    row = TABLE[finding.code]
    title = row.title.format(subject=finding.subject)
    hint = row.hint.format(command=finding.command)
    return HealthWarning(finding.code, row.severity, title, hint, finding.about)
