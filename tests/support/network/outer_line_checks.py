"""What must hold of the outer steps of a run, whatever befell its islands.

Owns these checks. Reads ledgers, what ranks have said, and the audit; knows no strikes, only which
islands one of them may have cost a round.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from jupiterd.cluster.facts.facts import OuterStepTaken
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.ids import CycleId, short
from tests.support.network.machines import Machine, Machines
from tests.support.strikes.outer_digests import digests, taken_by_ranks

Line = Mapping[str, OuterStepTaken]


@dataclass(frozen=True)
class Struck:
    """What a strike may have cost: rounds of these islands, of those that were open then."""

    islands: frozenset[int]
    first: int
    """The outer step that ordered the oldest round that was open."""
    last: int
    """The one by which all trained again."""
    rounds: int = 1
    """Of each."""


def assert_one_line(runs: Sequence[CycleState], steps: int) -> Line:
    """All nodes have the same line; each step follows the one before, to the last inner step."""
    lines = [run.outer_branch() for run in runs]
    assert all([*line] == [*lines[0]] for line in lines)
    taken = [*lines[0].values()]
    assert [step.number for step in taken] == [*range(len(taken))]
    assert (taken[-1].first_step, taken[-1].steps) == (steps, 0)
    return lines[0]


def assert_equal_weights(machines: Collection[Machine], run: CycleState) -> int:
    """After each outer step all ranks had the same weights, to the bit; return how many count."""
    said = digests(*machines)
    differing = {name: found for name, found in said.items() if len(found) > 1}
    assert not differing, differing
    of_line = {short(name) for name in run.outer_branch()} & said.keys()
    assert of_line, "no outer step of the line was told of"
    return len(of_line)


def assert_taken_once(machines: Collection[Machine]) -> None:
    """No rank has taken an outer step twice, or gone back."""
    for machine in machines:
        for taken in taken_by_ranks(machine):
            numbers = [number for number, *_ in taken]
            assert numbers == sorted({*numbers}), f"{machine.name}: {numbers}"


def assert_nobody_lost_more(
    line: Line, islands: Mapping[CycleId, int], struck: Sequence[Struck]
) -> int:
    """Ways are missing only of islands that were struck, as many as may be; return how many."""
    lost = [
        (closed.number, islands[CycleId(island)])
        for closed, step in _closed_rounds(line)
        for island in sorted({*closed.batches} - {*step.islands})
    ]
    allowed = [
        (island, each.first, each.last)
        for each in struck
        for island in each.islands
        for _ in range(each.rounds)
    ]
    for number, island in lost:
        cause = next(
            (each for each in allowed if each[0] == island and each[1] <= number <= each[2]), None
        )
        assert cause, f"island {island} lost round {number}; lost: {lost}, strikes: {struck}"
        allowed.remove(cause)
    return len(lost)


def _closed_rounds(line: Line) -> Iterator[tuple[OuterStepTaken, OuterStepTaken]]:
    """Yield each step that orders a round, and the one that merges what was trained in it."""
    taken = [*line.values()]
    return zip(taken, taken[taken[0].lag :], strict=False)


def assert_audited(machines: Machines, run: str, line: Line, seq_len: int) -> None:
    """What counts was trained on once, as any node proves that has the line."""
    audited = machines.ctl("data", "audit", run, "-o", "json")
    assert audited.returncode == 0, audited.stdout + audited.stderr
    (proof,) = json.loads(audited.stdout)["audit"]
    (only,) = proof["rounds"]
    last = [*line.values()][-1]
    counted = sum(sum(step.tokens) for step in line.values())
    returned = sum(end - first for first, end in proof["returned"])
    assert (proof["ok"], proof["given_out"]) == (True, []), proof
    assert (only["cursor"], only["tokens"]) == (last.cursor, counted)
    assert counted == last.total_tokens == (last.cursor - returned) * seq_len
