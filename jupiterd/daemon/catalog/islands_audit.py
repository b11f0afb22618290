"""The proof of what islands have trained on, in a run or in rounds of a cycle, for `data audit`.

Owns its keys besides those of any run. Doesn't know the arithmetic (`cycle.islands.outer_audit`).
What an island's checkpoints say of themselves plays no part: they don't know what the others have
trained.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jupiterd.cluster.facts.facts import CheckpointCommitted, OuterStepTaken
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cycle.data.audit import Range, RoundAudit
from jupiterd.cycle.islands.outer_audit import OuterAudit, audit_outer_branch
from jupiterd.daemon.catalog.audit_round import round_document
from jupiterd.daemon.catalog.outer_step_mapping import order_of
from jupiterd.ids import short

ROUND = 1
NAME = "outer steps"
"""What commits the positions, where other runs name a checkpoint."""


@dataclass(frozen=True)
class IslandRound:
    """The proof of one round."""

    audit: RoundAudit
    outer: OuterAudit
    checkpoints: int


def rounds_of_islands(run: CycleState) -> list[int]:
    """Return the rounds that islands have trained, or train, on the line that counts."""
    numbers = sorted({step.round for step in run.outer_steps()})
    return [number for number in numbers if run.outer_branch(number) and _is_theirs(run, number)]


def _is_theirs(run: CycleState, round_number: int) -> bool:
    """Say whether no gang has trained the round all the same: its attempts are the cycle's own."""
    last = run.last_checkpoint(round_number)
    return last is None or last.attempt not in run.attempts_opened


def island_proof(run: CycleState, seq_len: int) -> dict[str, Any]:
    """Return what is proved of a run that has taken an outer step."""
    proved = audit_round(run, ROUND, seq_len)
    return {
        "ok": not proved.audit.problems,
        "rounds": [round_document(proved.audit)],
        "checkpoints": proved.checkpoints,
        "checkpoints_read": 0,
        "problems": [],
        **outer_keys([proved]),
    }


def outer_keys(rounds: Sequence[IslandRound]) -> dict[str, Any]:
    """Return what only the proof of islands has; positions are those of the last round."""
    last = rounds[-1].outer
    return {
        "outer_steps": sum(each.outer.outer_steps for each in rounds),
        "given_out": [list(each) for each in last.given_out],
        "returned": [list(each) for each in last.returned],
    }


def audit_round(run: CycleState, round_number: int, seq_len: int) -> IslandRound:
    """Return what is proved of a round whose islands have taken an outer step."""
    line = [*run.outer_branch(round_number).values()]
    proved = audit_outer_branch([*map(order_of, line)], seq_len)
    checkpoints = (fact for fact in run.canonical_branch() if isinstance(fact, CheckpointCommitted))
    finals = [fact for fact in checkpoints if fact.round == round_number]
    differences = (_difference(fact, line[0], proved) for fact in finals)
    manifest = run.manifests.get(round_number)
    audit = RoundAudit(
        round=round_number,
        sequences=0 if manifest is None else manifest.sequences,
        cursor=proved.cursor,
        tokens=proved.tokens,
        began_tokens=line[0].total_tokens,
        ranges=tuple(Range(first, end, NAME, 0) for first, end in proved.committed),
        problems=(*proved.problems, *filter(None, differences)),
    )
    return IslandRound(audit, proved, len(finals))


def _difference(fact: CheckpointCommitted, first: OuterStepTaken, proved: OuterAudit) -> str:
    """Say where a last checkpoint isn't what its islands have trained; empty where it is."""
    tokens = fact.tokens - first.total_tokens
    if (tokens, fact.cursor) == (proved.tokens, proved.cursor):
        return ""
    return (
        f"checkpoint {short(fact.artifact)} was recorded with {tokens} tokens up to "
        f"{fact.cursor}, and the islands have trained on {proved.tokens} up to {proved.cursor}"
    )
