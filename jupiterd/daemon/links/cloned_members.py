"""Members that say themselves that another machine uses their key.

Owns what each of them said last, and for how long it counts. Doesn't know how a member finds that
out (`cluster.clones`): both machines are silent then, and send nothing else.
"""

import logging
from typing import Final

from jupiterd.daemon.runtime.clock import now_s
from jupiterd.daemon.runtime.untrusted_input import sanitized_text
from jupiterd.ids import NodeId, short
from jupiterd.net.scopes import without_scope_in
from jupiterd.ports import Address
from jupiterd.rpc import peer_pb2

log = logging.getLogger(__name__)

COUNTS_S: Final = 60.0
"""A silent machine gets a hello every half minute at least."""

MOST_DAEMONS: Final = 4


class ClonedMembers:
    """Where both machines are, for each such member."""

    def __init__(self) -> None:
        self._met: dict[NodeId, tuple[float, dict[str, str]]] = {}
        """When it was said last, and for each of the daemons where it is."""

    def note(self, node: NodeId, address: Address, reply: peer_pb2.HelloReply) -> bool:
        """Take in what a member says at an address; return whether another has its key."""
        if not reply.clone_at:
            if self._met.pop(node, None):
                log.info("member_clone_gone", extra={"node": short(node)})
            return False
        other = without_scope_in(sanitized_text(reply.clone_at))
        if node not in self._met:
            extra = {"node": short(node), "address": str(address), "other": other}
            log.warning("member_cloned", extra=extra)
        _, at = self._met.get(node, (0.0, dict[str, str]()))
        where, daemon = without_scope_in(str(address)), sanitized_text(reply.run_nonce)
        if at.get(daemon, "[").startswith("["):  # people know IPv4 addresses better
            at[daemon] = where
        met = {key: text for key, text in at.items() if key}
        at = dict(list(met.items())[-MOST_DAEMONS:]) if len(met) > 1 else {**met, "": other}
        self._met[node] = now_s(), at
        return True

    def addresses(self, node: NodeId) -> tuple[str, ...]:
        """Return where a member and the other machine with its key are; empty: nobody says so."""
        at_s, at = self._met.get(node, (0.0, dict[str, str]()))
        return tuple(sorted(at.values())) if at and now_s() - at_s < COUNTS_S else ()
