"""A question to another process and its answer, each of which the network may lose.

Owns that an answer comes once, or None when time is up. Doesn't know what is asked.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from jupiterd.errors import JupiterError
from jupiterd.ids import NodeId

if TYPE_CHECKING:
    from tests.simulation.node.process import Process

Reply = TypeVar("Reply")


def call(
    caller: "Process",
    target: NodeId,
    ask: "Callable[[Process], Reply]",
    answered: "Callable[[Process, Reply | None], None]",
    timeout_s: float,
) -> None:
    """Ask the process of a machine; an error there is no answer."""
    network = caller.world.network
    is_over = False

    def finish(own: "Process", reply: Reply | None) -> None:
        nonlocal is_over
        if own is caller and not is_over:
            is_over = True
            answered(own, reply)

    def serve(peer: "Process") -> None:
        try:
            reply = ask(peer)
        except JupiterError:
            return
        network.send(target, caller.place, lambda own: finish(own, reply))

    network.send(caller.place, target, serve)
    caller.wait(timeout_s, lambda own: finish(own, None))
