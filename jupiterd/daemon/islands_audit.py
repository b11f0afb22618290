"""The proof of what a run's islands have trained on, for `data audit`.

Owns its keys beside those of any run. Doesn't know the arithmetic (`cycle.outer_audit`). What an
island's checkpoints say of themselves plays no part: they don't know what the others have trained.
"""

from typing import Any

from jupiterd.cluster.cycle_state import CycleState
from jupiterd.cluster.facts import CheckpointCommitted
from jupiterd.cycle.audit import Range, RoundAudit
from jupiterd.cycle.outer_audit import OuterAudit, audit_outer_line
from jupiterd.daemon.audit_round import round_document
from jupiterd.daemon.outer_facts import order_of
from jupiterd.ids import short

ROUND = 1
NAME = "outer steps"
"""What commits the positions, where other runs name a checkpoint."""


def island_proof(run: CycleState, seq_len: int) -> dict[str, Any]:
    """Return what is proved of a run that has taken an outer step."""
    proved = audit_outer_line([*map(order_of, run.outer_line().values())], seq_len)
    finals = [fact for fact in run.line() if isinstance(fact, CheckpointCommitted)]
    problems = (*proved.problems, *(p for fact in finals if (p := _difference(fact, proved))))
    manifest = run.manifests.get(ROUND)
    round_ = RoundAudit(
        round=ROUND,
        sequences=0 if manifest is None else manifest.sequences,
        cursor=proved.cursor,
        tokens=proved.tokens,
        ranges=tuple(Range(first, end, NAME, 0) for first, end in proved.committed),
        problems=problems,
    )
    return {
        "ok": not problems,
        "rounds": [round_document(round_)],
        "checkpoints": len(finals),
        "checkpoints_read": 0,
        "problems": [],
        "outer_steps": proved.outer_steps,
        "given_out": [list(each) for each in proved.given_out],
        "returned": [list(each) for each in proved.returned],
    }


def _difference(fact: CheckpointCommitted, proved: OuterAudit) -> str:
    """Say where a run's last checkpoint isn't what its islands have trained; empty where it is."""
    if (fact.tokens, fact.cursor) == (proved.tokens, proved.cursor):
        return ""
    return (
        f"checkpoint {short(fact.artifact)} was recorded with {fact.tokens} tokens up to "
        f"{fact.cursor}, and the islands have trained on {proved.tokens} up to {proved.cursor}"
    )
