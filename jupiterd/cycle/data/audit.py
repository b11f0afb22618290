"""Proof that a line of checkpoints has trained on every position of the data's order once.

Owns the arithmetic of ranges. Doesn't know facts, artifacts or shards: it is told what each
checkpoint says, and where the gang that made it had begun.

Position p of a round is sequence `permuted(p % n)` of pass p // n over the manifest's n sequences,
so that covering [0, cursor) once means training on each sequence once in every pass.

A gang trains on consecutive positions from where it began. So the range that a checkpoint adds
begins where the same gang's checkpoint before it ended, or else where the gang began: at the cursor
of the checkpoint that it had loaded, whatever the ledger names as the parent. A round begins with
what its first gang had loaded: the end of an earlier round's trunk, or the last candidate.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Committed:
    """What one checkpoint of the line says."""

    name: str
    round: int
    cursor: int
    """Positions of this round that it contains: [0, cursor)."""
    tokens: int
    """Tokens trained on along the line."""
    attempt: int
    began: int | None
    """The cursor at which that attempt's gang began in this round; None where nobody knows."""
    began_tokens: int | None = None
    """What the weights had been trained on that the gang had loaded, in an earlier round: on the
    trunk, fewer than those of the candidate that was judged. None: as many as it."""
    on_trunk: bool = False
    """The next round may go on from it."""


@dataclass(frozen=True)
class RoundTraining:
    """What a round trains on."""

    sequences: int
    seq_len: int


@dataclass(frozen=True)
class Range:
    """Positions [first, end) that a checkpoint has added."""

    first: int
    end: int
    name: str
    attempt: int


@dataclass(frozen=True)
class RoundAudit:
    """What is proved of one round, and what isn't."""

    round: int
    sequences: int
    cursor: int
    tokens: int
    """As reported by the round's last checkpoint, those that it began with taken off."""
    began_tokens: int
    """What its weights had been trained on before."""
    ranges: tuple[Range, ...]
    trunk_cursor: int = 0
    """Positions [0, trunk_cursor) are the trunk's, the rest those of the branch that was judged: a
    round that goes on with the trunk doesn't contain them. 0: it has no trunk."""
    problems: tuple[str, ...] = field(default=())

    @property
    def passes(self) -> tuple[int, int]:
        """Return the whole passes over the data, and the sequences of the one begun."""
        return divmod(self.cursor, self.sequences) if self.sequences else (0, self.cursor)


def audit(
    line: Sequence[Committed],
    trained: Mapping[int, RoundTraining],
    by_islands: Collection[int] = (),
) -> tuple[RoundAudit, ...]:
    """Return a judgement of each round of a line, from its root on.

    by_islands: rounds that are proved by their outer steps (`outer_audit`), and not here
    """
    rounds = sorted({each.round for each in line})
    audits: list[RoundAudit] = []
    tokens_before = 0
    for number in rounds:
        committed = [each for each in line if each.round == number]
        if number not in by_islands:
            stated = committed[0].began_tokens
            began_tokens = tokens_before if stated is None else stated
            audits.append(_audit_round(committed, trained.get(number), began_tokens))
        tokens_before = committed[-1].tokens
    return tuple(audits)


def _audit_round(
    committed: Sequence[Committed], trained: RoundTraining | None, tokens_before: int
) -> RoundAudit:
    ranges, problems = _ranges(committed)
    problems += _uncovered(ranges)
    if trained is None:
        problems.append(f"round {committed[0].round} has no manifest")
    else:
        problems += _miscounted(committed, ranges, trained, tokens_before)
    return RoundAudit(
        round=committed[0].round,
        sequences=0 if trained is None else trained.sequences,
        cursor=committed[-1].cursor,
        tokens=committed[-1].tokens - tokens_before,
        began_tokens=tokens_before,
        ranges=tuple(ranges),
        trunk_cursor=max((each.cursor for each in committed if each.on_trunk), default=0),
        problems=tuple(problems),
    )


def _ranges(committed: Sequence[Committed]) -> tuple[list[Range], list[str]]:
    ranges: list[Range] = []
    problems: list[str] = []
    for before, each in zip((None, *committed), committed, strict=False):
        is_same_gang = before is not None and before.attempt == each.attempt
        first = before.cursor if before is not None and is_same_gang else each.began
        if first is None:
            problems.append(
                f"nobody knows where attempt {each.attempt} began, which made {each.name}"
            )
            continue
        if each.cursor < first:
            problems.append(f"{each.name} ends at {each.cursor}, before it begins at {first}")
            continue
        ranges.append(Range(first, each.cursor, each.name, each.attempt))
    return ranges, problems


def _uncovered(ranges: Sequence[Range]) -> list[str]:
    """Return the gaps and overlaps, from position 0 on."""
    problems: list[str] = []
    covered = 0
    for each in ranges:
        if each.first > covered:
            problems.append(f"no checkpoint contains [{covered}, {each.first}), before {each.name}")
        if each.first < covered:
            twice = f"[{each.first}, {min(covered, each.end)})"
            problems.append(f"{twice} was trained on twice, the second time in {each.name}")
        covered = max(covered, each.end)
    return problems


def _miscounted(
    committed: Sequence[Committed],
    ranges: Sequence[Range],
    trained: RoundTraining,
    tokens_before: int,
) -> list[str]:
    """Return each checkpoint whose tokens aren't those of the ranges up to it."""
    problems: list[str] = []
    ends = {each.name: each for each in ranges}
    sequences = 0
    for each in committed:
        added = ends.get(each.name)
        sequences += 0 if added is None else added.end - added.first
        counted = sequences * trained.seq_len
        if each.tokens - tokens_before != counted:
            problems.append(
                f"{each.name} reports {each.tokens - tokens_before} tokens of round {each.round}, "
                f"and its ranges hold {counted}"
            )
    return problems
