"""What the stamped lines of islands' ranks come to: steps, rounds, and where their time went.

Owns that arithmetic. Doesn't know machines or wires.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean

from jupiterd.cluster.facts.facts import OuterStepTaken
from tests.bench.islands.processor_use import Span
from tests.bench.islands.stamps import Said

_STEP = re.compile(r"^\[Rank 0/.* \| Step (\d+) \|")
_OUTER = re.compile(r"^\[Rank 0/.*\] Outer step (\d+) \(\w+\) \| Ways \d+ \| Digest (\w+)$")


@dataclass
class Heard:
    """What the first rank of one island has said."""

    steps: list[tuple[int, float]] = field(default_factory=list[tuple[int, float]])
    """Step, when it was done; in the order in which they were."""
    outer: dict[int, tuple[str, float]] = field(default_factory=dict[int, tuple[str, float]])
    """Outer step -> digest of weights and momentum after it, when it was taken."""

    @property
    def at_s(self) -> Mapping[int, float]:
        """Return when each step was done."""
        return dict(self.steps)


@dataclass(frozen=True)
class Part:
    """One island's part of a round."""

    trained: int
    """Tokens."""
    tokens: int
    """Of these, those that count."""
    inner_s: float
    """What its steps take where nothing else is done."""
    waited_s: float
    """For the slowest island to end its steps."""
    exchanged_s: float
    """From then on until it has taken the outer step."""
    began_s: float
    """Lost at its first step."""
    span_s: float
    """From outer step to outer step."""


def heard(said: Sequence[Said]) -> dict[str, Heard]:
    """Return what each machine's rank has said."""
    found: dict[str, Heard] = {}
    for line in said:
        if match := _STEP.match(line.text):
            found.setdefault(line.machine, Heard()).steps.append((int(match[1]), line.at_s))
        elif match := _OUTER.match(line.text):
            outer = found.setdefault(line.machine, Heard()).outer
            outer.setdefault(int(match[1]), (match[2], line.at_s))
    return found


def equal_digests(islands: Sequence[Heard]) -> tuple[int, int]:
    """Return after how many outer steps all have the same weights and momentum, and of how many."""
    common = set.intersection(*({*island.outer} for island in islands)) - {0}
    equal = [len({island.outer[number][0] for island in islands}) == 1 for number in common]
    return sum(equal), len(equal)


def parts(
    islands: Mapping[str, Heard],
    runs: Mapping[str, str],
    taken: OuterStepTaken,
    ended: OuterStepTaken,
    seq_len: int,
) -> dict[str, Part]:
    """Return each island's part of the round between two outer steps.

    Args:
        islands: what each machine has said.
        runs: machine -> the run of its island.
        taken: the outer step that the round follows.
        ended: the one that it ends with; whoever was too slow isn't in it.
        seq_len: tokens of a sequence.
    """
    counted: dict[str, int] = dict(zip(ended.islands, ended.tokens, strict=True))
    done = {name: _times(island, taken.number) for name, island in islands.items()}
    slowest_s = max(times[-1] for times in done.values())
    found: dict[str, Part] = {}
    for name, times in done.items():
        step_s = (times[-1] - times[0]) / (len(times) - 1)
        began_s, ended_s = (islands[name].outer[taken.number + n][1] for n in (0, 1))
        found[name] = Part(
            trained=taken.batches[runs[name]] * len(times) * seq_len,
            tokens=counted.get(runs[name], 0),
            inner_s=step_s * len(times),
            waited_s=slowest_s - times[-1],
            exchanged_s=ended_s - slowest_s,
            began_s=times[0] - began_s - step_s,
            span_s=ended_s - began_s,
        )
    return found


def _times(island: Heard, number: int) -> Sequence[float]:
    """Return when an island's steps between two outer steps were done."""
    began_s, ended_s = (island.outer[number + n][1] for n in (0, 1))
    return [at_s for _, at_s in island.steps if began_s < at_s <= ended_s]


@dataclass(frozen=True)
class Stretch:
    """One island's part of some rounds in a row, during which it never waits for long."""

    tokens: int
    span: Span
    """From the end of the round before to the end of the last one."""
    calm_s: float
    """What its steps would take, were all as long as those of the second halves of the rounds: by
    then, nothing of the exchange is under way."""

    @property
    def span_s(self) -> float:
        """Return how long that is."""
        return self.span[1] - self.span[0]


def stretches(
    islands: Mapping[str, Heard],
    runs: Mapping[str, str],
    rounds: Sequence[OuterStepTaken],
    seq_len: int,
) -> dict[str, Stretch]:
    """Return each island's part of these rounds, none of which is the first one.

    islands, runs, seq_len: see `parts`
    """
    found: dict[str, Stretch] = {}
    for name, island in islands.items():
        at_s, calm_s, tokens = island.at_s, 0.0, 0
        for taken in rounds:
            end, half = taken.first_step + taken.steps, taken.steps // 2
            assert {end, end - half} <= at_s.keys(), f"{name}: no line of {end - half} or {end}"
            calm_s += (at_s[end] - at_s[end - half]) / half * taken.steps
            tokens += taken.batches[runs[name]] * taken.steps * seq_len
        last = rounds[-1].first_step + rounds[-1].steps
        found[name] = Stretch(tokens, (at_s[rounds[0].first_step], at_s[last]), calm_s)
    return found


def share_of_calm(islands: Mapping[str, Stretch]) -> float:
    """Return the tokens/s over whole rounds, as a share of the islands' sum in calm steps."""
    together = sum(each.tokens / each.span_s for each in islands.values())
    return together / sum(each.tokens / each.calm_s for each in islands.values())


def speed(rounds: Sequence[Mapping[str, Part]]) -> float:
    """Return the tokens/s of all islands over whole rounds."""
    span_s = sum(mean(part.span_s for part in each.values()) for each in rounds)
    return sum(part.tokens for each in rounds for part in each.values()) / span_s


def share_of_inner(rounds: Sequence[Mapping[str, Part]]) -> float:
    """Return the tokens/s over whole rounds, as a share of the islands' sum within steps."""
    solo = 0.0
    for name in rounds[0]:
        mine = [each[name] for each in rounds]
        solo += sum(part.trained for part in mine) / sum(part.inner_s for part in mine)
    return speed(rounds) / solo
