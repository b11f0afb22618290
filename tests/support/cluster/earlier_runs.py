"""What earlier runs have left in a ledger: an attempt that ended, with its last checkpoint."""

from dataclasses import replace

from jupiterd.cluster.facts.attempt_facts import AttemptClosed
from jupiterd.cluster.facts.facts import Fact
from jupiterd.ids import CycleId, NodeId
from tests.support.cluster.building import checkpoint, opened

EARLIER = CycleId("d" * 16)


def trained_before(attempt: int, engine: str, node: NodeId, tokens: int) -> list[Fact]:
    """An attempt of an earlier run of such a model that took half a minute."""
    begun = replace(opened(attempt), cycle=EARLIER, gang=(node,), engine=engine)
    made = replace(checkpoint(f"k{attempt}", tokens=tokens), cycle=EARLIER, attempt=attempt)
    return [begun, made, AttemptClosed(EARLIER, attempt, "finished", 30.0)]
