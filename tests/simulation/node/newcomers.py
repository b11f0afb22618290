"""Machines that aren't members and want to be: they knock, show a token, and fetch the ledger.

Real: `admission`, `tokens`, `roster`. Imitates `daemon.handshake` and `Join` of
`daemon.peer_service`; a newcomer's own blank cluster, which it drops, is left out.
"""

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from jupiterd.cluster.facts.facts import NodeAdmitted, TokenIssued
from jupiterd.cluster.ledger import tokens
from jupiterd.cluster.ledger.tokens import Side
from jupiterd.cluster.membership import admission
from jupiterd.cluster.membership.admission import Admission
from jupiterd.errors import JupiterError
from jupiterd.ids import NodeId
from tests.simulation.node import members
from tests.simulation.node.disk import Content
from tests.simulation.node.replica import CLUSTER, load
from tests.simulation.node.signing import certificate_of

if TYPE_CHECKING:
    from tests.simulation.node.process import Process
    from tests.simulation.world import World

Reply = TypeVar("Reply")

KNOCK_S = (0.5, 2.0)
WITH_TOKEN, MISTAKEN = 0.6, 0.25
WRONG_SECRET = "0" * 32


@dataclass(frozen=True)
class Shown:
    """What a newcomer shows: the id of a token, and that it knows the secret."""

    token: str = ""
    secret: str = ""

    def proof(self, side: Side, newcomer: NodeId, member: NodeId) -> bytes:
        """Return what proves the secret to the other side."""
        secret = self.secret or WRONG_SECRET
        return tokens.prove(secret, side, CLUSTER, newcomer, member)


@dataclass(frozen=True)
class AdmissionReply:
    """What a member says to a newcomer."""

    is_admitted: bool
    leader: NodeId | None
    proof: bytes = b""


class Newcomer:
    """One machine outside."""

    def __init__(self, world: "World", node: NodeId) -> None:
        self._world = world
        self._leader: NodeId | None = None
        self.node = node
        self.secrets_shown: set[tuple[str, str]] = set()
        """(token, secret) of what it has ever shown; kept for `door`."""

    def knock(self) -> None:
        """Ask a member to be let in, and again in a while."""
        world, rng = self._world, self._world.rng
        if self.node not in world.outside:
            return
        inside = [node for node in world.machines if node not in world.outside]
        target = self._leader or rng.choice(inside)
        self._leader, shown = None, self._choose_token()
        self.secrets_shown.add((shown.token, shown.secret))
        proof = shown.proof(Side.NEWCOMER, self.node, target)
        self._ask(
            target,
            lambda process: let_in(process, self.node, shown.token, proof),
            lambda answer: self._hear(target, shown, answer),
        )
        world.at(rng.uniform(*KNOCK_S), self.knock)

    def _choose_token(self) -> Shown:
        rng, issued = self._world.rng, list(self._world.tokens.values())
        if not issued or rng.random() >= WITH_TOKEN:
            return Shown()
        token = rng.choice(issued)
        return Shown(token.token, WRONG_SECRET if rng.random() < MISTAKEN else token.secret)

    def _hear(self, target: NodeId, shown: Shown, answer: AdmissionReply) -> None:
        self._leader = answer.leader
        expected = shown.proof(Side.MEMBER, self.node, target)
        is_trusted = not shown.token or tokens.is_proved(expected, answer.proof)
        if answer.is_admitted and is_trusted:
            self._ask(target, lambda process: hand_out(process, self.node), self._move_in)

    def _move_in(self, content: Content) -> None:
        """Start with the leader's ledger, if it has us."""
        world, machine = self._world, self._world.machines[self.node]
        is_member = self.node in load(content).state.members
        if is_member and machine.process is None and self.node in world.outside:
            machine.disk.content = content
            world.outside.remove(self.node)
            world.tell(f"{self.node[:2]} moves in")
            machine.start()

    def _ask(
        self,
        target: NodeId,
        ask: "Callable[[Process], Reply | None]",
        heard: "Callable[[Reply], None]",
    ) -> None:
        """Ask a member; its answer may get lost, and an error there is no answer."""
        world = self._world

        def answer(process: "Process") -> None:
            with contextlib.suppress(JupiterError):
                reply = ask(process)
                if reply is not None:
                    world.network.post(target, self.node, lambda: heard(reply))

        machine = world.machines[target]
        world.network.post(self.node, target, lambda: machine.deliver(answer))


def let_in(process: "Process", node: NodeId, token_id: str, proof: bytes) -> AdmissionReply | None:
    """Let a newcomer in, or say who leads; None where nothing could be recorded."""
    state = process.replica.ledger.state
    if process.leader_term is None or not process.leader_term.is_open:
        return AdmissionReply(is_admitted=False, leader=process.presence.election.leader)
    token = _proved(state.issued_tokens, process.node, node, token_id, proof)
    letting_in = token.token if token is not None and token.token in state.tokens else ""
    is_known = node in state.members
    walks_in = token is None and state.window_open and not state.roster.is_shut
    if not (is_known or walks_in or members.is_trusted(process)):
        return AdmissionReply(is_admitted=False, leader=process.presence.election.leader)
    decision, reason = admission.admit(state, state.window_open, node, letting_in)
    is_admitted = decision is Admission.ADMITTED
    process.world.met[reason.split(" token")[0]] += 1
    if is_admitted and not is_known:
        fact = NodeAdmitted(node, node[:2], certificate_of(node), reason, letting_in)
        if process.record(lambda _: [fact]) is None:
            return None
    shown = Shown(token.token, token.secret) if token is not None else Shown()
    return AdmissionReply(is_admitted, None, shown.proof(Side.MEMBER, node, process.node))


def hand_out(process: "Process", node: NodeId) -> Content | None:
    """Return our ledger for a newcomer; None where it is no member."""
    if not process.knows(node):
        return None
    ledger = process.replica.ledger
    if ledger.has_forgotten({}):
        return Content(snapshot=process.replica.snapshot())
    return Content(entries=tuple(entry.raw for entry in ledger.entries()))


def _proved(
    issued: Mapping[str, TokenIssued], member: NodeId, newcomer: NodeId, token_id: str, proof: bytes
) -> TokenIssued | None:
    token = issued.get(token_id)
    if token is None:
        return None
    expected = Shown(token.token, token.secret).proof(Side.NEWCOMER, newcomer, member)
    return token if tokens.is_proved(expected, proof) else None
