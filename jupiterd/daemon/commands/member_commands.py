"""Commands about who belongs to the cluster: its nodes, its window, its name.

Owns their checks and what each records; they run at the leader. Doesn't know how commands get here.
"""

import logging
import secrets
from dataclasses import replace
from typing import Any, Final

from jupiterd.cluster.facts.facts import (
    ClusterRenamed,
    NodeAdmitted,
    NodeRemoved,
    PairingWindowSet,
    RolePinned,
    TokenIssued,
    TokenWithdrawn,
)
from jupiterd.cluster.ledger.tokens import ID_BYTES, LIFETIME_S, SECRET_BYTES, Token
from jupiterd.cluster.membership.admission import MAX_MEMBERS, Admission, admit
from jupiterd.cluster.membership.admission_policy import closes_by_itself
from jupiterd.cluster.planning.roles import Role
from jupiterd.cluster.values.bounds import edit_after
from jupiterd.cluster.values.node_names import find_node, find_waiting
from jupiterd.daemon.leader.admissions import Admissions
from jupiterd.daemon.leader.machines import Machines
from jupiterd.daemon.leader.placement import Placement
from jupiterd.daemon.leader.term import Term
from jupiterd.daemon.runtime.approval_words import typed
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.errors import (
    BadCertificateError,
    ConflictError,
    NotFoundError,
    RefusedError,
    UsageError,
)
from jupiterd.ids import short
from jupiterd.net.identity import node_id_of
from jupiterd.protocol.commands.member_commands import (
    ApproveNode,
    CloseCluster,
    IssueToken,
    OpenCluster,
    PinRole,
    RemoveNode,
    RenameCluster,
    TrustNode,
    WithdrawToken,
)

log = logging.getLogger(__name__)

NO_PIN = "auto"
BY_A_PERSON = "a person has said yes to it"
YES: Final = {
    "cluster.yaml": "the cluster file of a trusted member names it",
    "--trust-lan": "a trusted member trusts everybody in its network",
}
"""What else is a yes."""
MAX_LABEL_CHARACTERS = 64


async def open_window(term: Term, admissions: Admissions, _command: OpenCluster) -> dict[str, Any]:
    """Let newcomers in; where there has been work, the leader closes the window in ten minutes.

    A cluster that has never run work is open as it is, and a record would only keep it from
    uniting with another fresh one.
    """
    state = term.state
    if not (state.window_open and not state.has_worked):
        await _set_window(term, is_open=True)
    state = term.state
    left_s = admissions.window.left_s(now_s(), state.window_edit)
    return {"open": True, "closes_in_s": left_s if closes_by_itself(state) else None}


async def close_window(term: Term, _command: CloseCluster) -> dict[str, Any]:
    """Let nobody in."""
    return await _set_window(term, is_open=False)


async def _set_window(term: Term, *, is_open: bool) -> dict[str, Any]:
    await term.record(PairingWindowSet(is_open, edit_after(term.state.window_edit)))
    return {"open": is_open}


async def rename_cluster(term: Term, command: RenameCluster) -> dict[str, Any]:
    """Give the cluster another name for people."""
    label = command.name.strip()
    if not (0 < len(label) <= MAX_LABEL_CHARACTERS and label.isprintable()):
        raise UsageError(f"a cluster's name has 1 to {MAX_LABEL_CHARACTERS} printable characters")
    await term.record(ClusterRenamed(label, edit_after(term.state.label_edit)))
    return {"name": label}


async def remove_node(term: Term, machines: Machines, command: RemoveNode) -> dict[str, Any]:
    """Take a node's membership away, everywhere and at once.

    Raises:
        ConflictError: it is the leader itself.
    """
    state = term.state
    names = machines.names()
    node = find_node(names, command.node)
    name = names[node]
    if node == term.self_id:
        raise ConflictError(
            f"{name} leads the cluster just now",
            "stop jupiterd on it first; another node leads then and can remove it",
        )
    removed = NodeRemoved(node, state.roster.admissions_of(node), term.replica.ledger.tips_of(node))
    spoiled = [TokenWithdrawn(token, f"{name} knew it, and was removed") for token in state.tokens]
    await term.record(removed, *spoiled)
    return {"node": node, "name": name}


async def approve_node(term: Term, admissions: Admissions, command: ApproveNode) -> dict[str, Any]:
    """Let in a node that waits, whose words are these; without words nothing is compared.

    Raises:
        NotFoundError: no such node waits.
        RefusedError: its words are others, or it may not come in at all.
    """
    words = typed(command.words) if command.words else None
    names = {seen.node: seen.name for seen in admissions.waiting.shown(now_s())}
    node = find_waiting(names, command.node)
    applicant = admissions.waiting.check(now_s(), node, words)
    decision, reason = admit(term.state, is_open=False, node=node)
    if decision is Admission.REFUSED:
        raise RefusedError(
            f"{applicant.name} can't be let in: {reason}",
            "jupiterctl node list shows the members; a machine that was removed can come back "
            "with a new state folder",
        )
    how = "who compared the words" if words else "without comparing the words"
    reason = f"approved by a person {how}"
    await term.record(NodeAdmitted(node, applicant.name, applicant.certificate_pem, reason))
    admissions.waiting.drop(node)
    log.info("admitted", extra={"node": short(node), "reason": reason})
    return {"node": node, "name": applicant.name}


async def trust_node(term: Term, machines: Machines, command: TrustNode) -> dict[str, Any]:
    """Say yes to a member that walked in: it is admitted once more, by a person.

    Raises:
        ConflictError: somebody has said so before.
    """
    state, names = term.state, machines.names()
    node = find_node(names, command.node)
    if node in state.roster.trusted:
        raise ConflictError(f"{names[node]} is trusted already", "jupiterctl node list")
    admitted = state.members[node]
    if node_id_of(admitted.certificate_pem) != node:
        raise BadCertificateError(f"what was recorded as {names[node]}'s certificate isn't its own")
    reason = YES.get(command.because or "", BY_A_PERSON)
    await term.record(replace(admitted, name=names[node], reason=reason, token=""))
    log.info("trusted", extra={"node": short(node), "reason": reason})
    return {"node": node, "name": names[node]}


async def pin_role(term: Term, placement: Placement, command: PinRole) -> dict[str, Any]:
    """Fix what a node does, or leave it to the leader again.

    `workers_left` says how many nodes with an engine may still be given work.
    """
    wanted = command.role
    if wanted != NO_PIN and wanted not in list(Role):
        choices = ", ".join((*Role, NO_PIN))
        raise UsageError(f"{wanted} is no role", f"choose one of {choices}")
    state, names = term.state, placement.machines.names()
    node = find_node(names, command.node)
    known = state.pins.get(node)
    role = "" if wanted == NO_PIN else wanted
    await term.record(RolePinned(node, role, 1 if known is None else edit_after(known.edit)))
    left = sum(seat.has_engine for seat in placement.seats())
    return {"node": node, "name": names[node], "role": wanted, "workers_left": left}


async def issue_token(term: Term, command: IssueToken) -> dict[str, Any]:
    """Make a join token for one newcomer, or so many (0: any number), good for a day."""
    uses = command.uses
    if not 0 <= uses <= MAX_MEMBERS:
        raise UsageError(f"a token is for 1 to {MAX_MEMBERS} nodes, or 0 for any number")
    cluster = term.replica.cluster
    token = Token(cluster, secrets.token_hex(ID_BYTES), secrets.token_hex(SECRET_BYTES))
    await term.record(TokenIssued(token.id, token.secret, uses))
    return {"token": str(token), "id": token.id, "uses": uses, "expires_in_s": LIFETIME_S}


async def withdraw_token(term: Term, command: WithdrawToken) -> dict[str, Any]:
    """Let a token let in nobody any more."""
    wanted = command.token
    found = [token for token in term.state.tokens if wanted and token.startswith(wanted)]
    if len(found) != 1:
        raise NotFoundError(
            f"no one token in force begins with {wanted}", "jupiterctl cluster show"
        )
    await term.record(TokenWithdrawn(found[0], "somebody withdrew it"))
    return {"id": found[0]}
