"""Proof that islands have trained on each position of the data's order once, by their outer line.

Owns the arithmetic. Doesn't know facts or shards: it is handed the orders of the line's steps, the
first one first.

An island's positions are committed by the step that merges its pseudo-gradient. So of all positions
below the cursor each has been committed once, but for those of the rounds that are open, and those
that came back and weren't given out again.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from jupiterd.cycle.base.positions import Range
from jupiterd.cycle.islands.outer_orders import OuterOrder


@dataclass(frozen=True)
class OuterAudit:
    """What is proved of a line, and what isn't."""

    outer_steps: int
    """Those that merged something."""
    cursor: int
    tokens: int
    """As the line reports them, without those before it."""
    committed: tuple[Range, ...]
    """Positions that were trained on, once each; in their order, none touching another."""
    given_out: tuple[Range, ...]
    """Those of the rounds that are open."""
    returned: tuple[Range, ...]
    problems: tuple[str, ...] = ()


def audit_outer_branch(line: Sequence[OuterOrder], seq_len: int) -> OuterAudit:
    """Return the judgement of a line that begins with its first step."""
    last = line[-1]
    committed = [each for step in line for each in _merged(line, step)]
    given_out = [
        each for step in line[-last.lag :] for ranges in step.positions.values() for each in ranges
    ]
    problems = [
        *_not_handed_on(line),
        *_uncovered([*committed, *given_out, *last.left.returned], last.left.cursor),
    ]
    counted = seq_len * _size(committed)
    reported = last.total_tokens - line[0].total_tokens  # a cycle's rounds count on
    if reported != counted:
        problems.append(f"{reported} tokens are reported, and {counted} were trained on")
    return OuterAudit(
        outer_steps=sum(1 for step in line if step.islands),
        cursor=last.left.cursor,
        tokens=reported,
        committed=_joined(committed),
        given_out=_joined(given_out),
        returned=last.left.returned,
        problems=tuple(problems),
    )


def _merged(line: Sequence[OuterOrder], step: OuterOrder) -> list[Range]:
    """Return the positions of the pseudo-gradients that a step merges."""
    given = _closed_by(line, step)
    return [each for name in step.islands for each in given.get(name, ())]


def _closed_by(line: Sequence[OuterOrder], step: OuterOrder) -> Mapping[str, Sequence[Range]]:
    """Return what was given out for the round that a step closes; nothing where it closes none."""
    closes = step.closes - line[0].number
    return line[closes].positions if 0 <= closes < len(line) else {}


def _not_handed_on(line: Sequence[OuterOrder]) -> list[str]:
    """Return where a merged pseudo-gradient has no island, or another weight than its positions."""
    problems = [] if not line[0].number else [f"the line begins with step {line[0].number}"]
    for before, step in itertools.pairwise(line):
        strangers = set(step.islands) - _closed_by(line, step).keys()
        if strangers:
            listed = ", ".join(sorted(strangers))
            problems.append(
                f"outer step {step.number} merges pseudo-gradients of {listed}, who had no order"
            )
        if step.first_step != before.first_step + before.steps:
            problems.append(f"outer step {step.number} begins at inner step {step.first_step}")
    return problems


def _uncovered(ranges: Iterable[Range], cursor: int) -> list[str]:
    """Return the gaps and overlaps, from position 0 to the cursor."""
    problems: list[str] = []
    covered = 0
    for first, end in sorted(ranges):
        if first > covered:
            problems.append(f"nobody has trained on [{covered}, {first})")
        if first < covered:
            problems.append(f"[{first}, {min(covered, end)}) was given out twice")
        covered = max(covered, end)
    if covered != cursor:
        problems.append(f"positions up to {covered} are known, and the cursor is at {cursor}")
    return problems


def _joined(ranges: Iterable[Range]) -> tuple[Range, ...]:
    joined: list[Range] = []
    for first, end in sorted(ranges):
        if joined and first <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((first, end))
    return tuple(joined)


def _size(ranges: Iterable[Range]) -> int:
    return sum(end - first for first, end in ranges)
