"""Which machines a gang is faster without, and whom it takes in on trial.

Owns the choice of a gang's members by what each was measured to do, or is guessed to do. Doesn't
know how a gang is launched, whether machines reach each other, or the clock: it counts steps.

A step takes as long as its slowest rank computes, and then the exchange. Each rank computes one
sequence at least, so a machine that needs longer for one than the others need for all slows every
step. Of machines that differ in speed alone the best gang of k is the k fastest, so there are as
many gangs to compare as machines.

What is known of a speed is known to some degree (`speed_estimate`), and a step of a few sequences
takes no longer until it takes one sequence longer. So gangs are compared by their mean step over
several cases that are all likely. Whoever was never a member is known to a factor of two only: in
the first steps it is taken to be as fast as it may be, joins on trial if all would gain by it, is
measured, and is let go of where it isn't worth its place.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from heapq import heapify, heapreplace
from statistics import fmean

from jupiterd.cluster.training.speed_estimate import SpeedEstimate
from jupiterd.ids import NodeId

FIRST_LOOK_STEPS, LOOK_EVERY_STEPS = 6, 5
"""When the members of an attempt are compared first, and how often afterwards."""

WORTH_LEAVING = 0.01
"""What the others must gain, as a share of the step, for a machine to be let go of."""

DOUBT_STEPS = 0.1
"""Of the first few steps of a member only a great gain is believed: so much over their number."""

CLEARLY_SLOWER = 0.25
"""By so much of the step, and nobody begins with a machine of which all is guessed."""

WORTH_JOINING = 0.005
"""What all must gain, as a share of the step, by a machine that isn't a member."""

HOPE = 1.7
"""Deviations above what is likely: as fast as a machine may be of which little is known."""

TRIAL_STEPS = 42
"""So long machines that aren't members are taken to be as fast as they may be: each that may be
worth its place has been measured then. Later chance would bring about trials."""

CASES: Sequence[float] = (-1.4, -0.8, -0.4, -0.1, 0.1, 0.4, 0.8, 1.4)
"""Deviations from what is likely, for cases that are all likely; machine by machine in turn."""

Exchange = Callable[[frozenset[NodeId]], float]
"""Machines -> seconds that they take to add up their gradients."""


def computing_s(batch: int, rates: Iterable[float]) -> float:
    """Return how long the slowest of these machines computes, if a step is shared out at best.

    Args:
        batch: sequences of a step; at least one for each.
        rates: sequences per second of each machine.
    """
    found = list(rates)
    begin_s = (batch - len(found)) / sum(found)  # no earlier is anybody done
    shares = [max(1, math.floor(begin_s * rate)) for rate in found]
    queue = [((share + 1) / rate, share, rate) for share, rate in zip(shares, found, strict=True)]
    heapify(queue)
    for _ in range(batch - sum(shares)):
        _, share, rate = queue[0]
        heapreplace(queue, ((share + 2) / rate, share + 1, rate))
    return max(share / rate for _, share, rate in queue)


def fastest_gang(
    batch: int, rates: Mapping[NodeId, float], exchange: Exchange, wanted: AbstractSet[NodeId]
) -> frozenset[NodeId]:
    """Return the machines whose steps are the shortest.

    Args:
        batch: sequences of a step.
        rates: sequences per second of each machine that could train.
        exchange: what adding up takes.
        wanted: who trains however slow it is, since people said so.
    """

    def step_s(gang: frozenset[NodeId]) -> float:
        return computing_s(batch, (rates[node] for node in sorted(gang))) + exchange(gang)

    return min(gangs_of(batch, rates, wanted), key=step_s)


def worth_starting_with(
    batch: int, guesses: Mapping[NodeId, float], wanted: AbstractSet[NodeId]
) -> frozenset[NodeId]:
    """Return the machines to begin with, where nothing is known but guesses.

    The most whose step isn't much longer than the shortest: who is left out must be so for certain.
    """
    gangs = gangs_of(batch, guesses, wanted)
    times = [computing_s(batch, (guesses[node] for node in sorted(gang))) for gang in gangs]
    most = min(times) * (1 + CLEARLY_SLOWER)
    return [gang for gang, step_s in zip(gangs, times, strict=True) if step_s <= most][-1]


def gangs_of(
    batch: int, rates: Mapping[NodeId, float], wanted: AbstractSet[NodeId]
) -> list[frozenset[NodeId]]:
    """Return the gangs that may be the fastest: of each size the one of the fastest machines."""
    first = sorted(wanted & rates.keys())[:batch]
    others = sorted(rates.keys() - {*first}, key=lambda node: (-rates[node], node))
    sizes = range(max(1, len(first)), min(len(rates), batch) + 1)
    return [frozenset([*first, *others][:size]) for size in sizes]


class GangMembers:
    """Who trains, and who had better not; for one round of training."""

    def __init__(
        self,
        batch: int,
        speeds: Mapping[NodeId, SpeedEstimate],
        exchange: Exchange,
        wanted: AbstractSet[NodeId] = frozenset(),
        change_s: float = 0.0,
    ) -> None:
        """Choose who trains first.

        Args:
            batch: sequences of a step.
            speeds: of each machine that could train, as far as anybody knows.
            exchange: what adding up gradients takes.
            wanted: who trains however slow it is.
            change_s: what it takes to go on with another gang; it must be made up for.
        """
        self._batch, self._exchange, self.wanted = batch, exchange, wanted
        self._change_s, self._left_steps = change_s, math.inf
        self._speeds = dict(speeds)
        self._steps = dict.fromkeys(speeds, 0)
        self._step = self._attempt_began = 0
        hoped = {node: speed.rate(HOPE) for node, speed in self._speeds.items()}
        self._members = fastest_gang(batch, hoped, exchange, wanted)

    @property
    def members(self) -> frozenset[NodeId]:
        """Return who is to train."""
        return self._members

    @property
    def known(self) -> AbstractSet[NodeId]:
        """Return whose speed is known or guessed."""
        return self._speeds.keys()

    def step_s(self, gang: AbstractSet[NodeId]) -> float:
        """Return how long a step of these machines is likely to take, in seconds."""
        return self._step_s({node: self._speeds[node].rate() for node in gang}, gang)

    def rate(self, node: NodeId) -> float:
        """Return what a machine is likely to do, in sequences per second."""
        return self._speeds[node].rate()

    def rescale(self, factor: float) -> None:
        """Take in that all speeds were guesses, and so many times too low."""
        for speed in self._speeds.values():
            speed.rescale(factor)

    def begin(self, members: AbstractSet[NodeId]) -> None:
        """Take in that an attempt begins with these members, all of whom are known."""
        self._members, self._attempt_began = frozenset(members), self._step

    def measured(self, rates: Mapping[NodeId, float], left_steps: float = math.inf) -> bool:
        """Take in what each member did in one step, in sequences per second.

        left_steps: how many steps are to be trained yet

        Returns whether others are to train from the next step on.
        """
        self._step += 1
        self._left_steps = left_steps
        for node, rate in rates.items():
            self._speeds[node].stepped(rate, self._step)
            self._steps[node] += 1
        if not self._is_due():
            return False
        is_early = self._step <= TRIAL_STEPS
        found = self._on_trial() if is_early else self._better_ones()
        if found is None:
            return False
        self._members, self._attempt_began = found, self._step
        return True

    def probed(self, node: NodeId, rate: float) -> None:
        """Take in what a machine does alone, in sequences per second."""
        if node in self._speeds:
            self._speeds[node].probed(rate, self._step)
        else:
            self.add(node, SpeedEstimate(rate, self._step))

    def is_worth_a_trial(self, node: NodeId) -> bool:
        """Return whether a machine that isn't a member would make all faster, if all goes well."""
        rates = {member: self._speeds[member].rate() for member in self._members}
        rates[node] = self._speeds[node].rate(HOPE)
        return node in fastest_gang(self._batch, rates, self._exchange, self.wanted)

    def add(self, node: NodeId, speed: SpeedEstimate) -> None:
        """Take in that another machine could train."""
        self._speeds[node], self._steps[node] = speed, 0

    def forget(self, node: NodeId) -> None:
        """Take in that a machine is gone, or can't train."""
        self._speeds.pop(node, None)
        self._steps.pop(node, None)
        self._members -= {node}

    def _is_due(self) -> bool:
        steps = self._step - self._attempt_began
        return steps >= FIRST_LOOK_STEPS and (steps - FIRST_LOOK_STEPS) % LOOK_EVERY_STEPS == 0

    def _on_trial(self) -> frozenset[NodeId] | None:
        """Return all who may be worth their place; None where these are the members, or nearly."""
        rates = {node: speed.rate() for node, speed in self._speeds.items()}
        worth = {node for node in sorted(rates) if self._may_be_worth_it(node, rates)}
        found = frozenset(worth) or self._members
        gain = 1 - self._step_s(rates, found) / self._step_s(rates, self._members)
        is_gained = gain >= self._least(WORTH_LEAVING, self._step_s(rates, self._members))
        return found if found != self._members and (is_gained or found - self._members) else None

    def _may_be_worth_it(self, node: NodeId, rates: Mapping[NodeId, float]) -> bool:
        """Return whether a machine would make all faster if it did as well as it may."""
        hoped = {**rates, node: self._speeds[node].rate(HOPE)}
        best = fastest_gang(self._batch, hoped, self._exchange, self.wanted)
        if node in self._members or node not in best:
            return node in best
        others = {other: rate for other, rate in hoped.items() if other != node}
        without = fastest_gang(self._batch, others, self._exchange, self.wanted)
        step_s = self._step_s(others, without)
        return 1 - self._step_s(hoped, best) / step_s >= self._least(WORTH_JOINING, step_s)

    def _least(self, gain: float, step_s: float) -> float:
        """Return what must be gained, as a share of the step, for a change to be worth it."""
        return max(gain, self._change_s / (self._left_steps * step_s))

    def _better_ones(self) -> frozenset[NodeId] | None:
        """Return a gang that is faster than the members; None where none is, by enough."""
        fewest = max(1, min(self._steps[node] for node in self._members))
        tried = [node for node, steps in self._steps.items() if steps]
        least_gain = max(WORTH_LEAVING, DOUBT_STEPS / fewest)
        return self._better(self._members, least_gain) or self._better(tried, WORTH_JOINING)

    def _better(self, among: Iterable[NodeId], least_gain: float) -> frozenset[NodeId] | None:
        """Return the fastest gang among these, if it is faster than the members by so much."""
        cases = self._cases({*among} | self._members)
        likely = {node: fmean(case[node] for case in cases) for node in cases[0]}
        times = {
            gang: fmean(self._step_s(case, gang) for case in cases)
            for gang in gangs_of(self._batch, likely, self.wanted)
        }
        best = min(times, key=lambda gang: times[gang])
        now_s = fmean(self._step_s(case, self._members) for case in cases)
        is_gained = 1 - times[best] / now_s >= self._least(least_gain, now_s)
        return best if best != self._members and is_gained else None

    def _cases(self, nodes: Iterable[NodeId]) -> list[dict[NodeId, float]]:
        """Return speeds that are all likely."""
        speeds = [self._speeds[node] for node in sorted(nodes)]
        return [
            {
                node: speed.rate(CASES[((2 * number + 1) * case + number) % len(CASES)])
                for number, (node, speed) in enumerate(zip(sorted(nodes), speeds, strict=True))
            }
            for case in range(len(CASES))
        ]

    def _step_s(self, rates: Mapping[NodeId, float], gang: AbstractSet[NodeId]) -> float:
        computing = computing_s(self._batch, (rates[node] for node in sorted(gang)))
        return computing + self._exchange(frozenset(gang))
