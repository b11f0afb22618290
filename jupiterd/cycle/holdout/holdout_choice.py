"""Working out what is held out of a collection.

Owns the choice: which clusters are held out as wholes, which ones the gate counts by, and where
each part ends. Doesn't know files, or what becomes of a document later (`holdout_plan`).

1. What is held out as a whole is as large as it may be: the largest clusters of which the gate has
   ENOUGH_GATE_CLUSTERS, else files.
2. Where larger clusters than those are at least as many as a verdict needs, the gate counts by the
   largest such, and has as many documents of each as of any other. Fewer than that, or one that
   has nearly all documents beside some single files, say nothing of others like them: then the
   verdict holds for these alone.
3. Parts are filled one after the other, along the line, or one document of each line in turn.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from jupiterd.cycle.holdout.clusters import DOCUMENT, Level, cluster_at, depths_of, level_of
from jupiterd.cycle.holdout.holdout_plan import LINE, Collected, Ends, HoldoutPlan, place_of
from jupiterd.cycle.holdout.holdout_rules import (
    ENOUGH_GATE_CLUSTERS,
    MOST_HELD_OUT,
    HoldoutParts,
    HoldoutRules,
    named_shares,
    wanted_parts,
)
from jupiterd.cycle.holdout.near_clusters import joined_clusters
from jupiterd.formats import counted

LARGEST_OF_PART: Final = 0.25
"""A cluster with more of what the gate is to have isn't held out: it would be most of it."""

LEAST_EFFECTIVE: Final = 3.0
"""As many equal clusters the level must be worth by which the gate counts: a folder of two hundred
files beside ten single ones is worth less than two, and no gain would ever show."""

Sizes = Mapping[str, int]
"""Cluster -> documents of it that could be scored."""


def plan_holdout(documents: Sequence[Collected], rules: HoldoutRules) -> tuple[HoldoutPlan, str]:
    """Return what is held out of these documents, and why clusters are what they are."""
    scored = _scored(documents, rules)
    wanted = wanted_parts(len(scored), rules)
    levels = Levels(documents, scored, rules.max_cluster_documents)
    whole, reason = choose_level(levels, wanted, rules)
    plan = HoldoutPlan(rules.salt, whole.depth, joined=levels.joined_at(whole.depth))
    if rules.fraction is not None:
        fraction, dev, vault = named_shares(len(scored), rules)
        return replace(plan, fraction=fraction, dev=dev, vault=vault), reason
    if coarse := counted_by(levels, whole, rules):
        reason = (
            f"the gate counts by {counted(coarse.clusters, 'cluster')} ({coarse.name}); {reason}"
        )
        joined = levels.joined_at(coarse.depth)
        plan = replace(plan, counted_depth=coarse.depth, counted_joined=joined)
        wanted = as_many_as_are_scored(wanted, coarse, rules)
    return _filled(plan, scored, wanted, rules), reason


class Levels:
    """The levels of some documents, each counted when it is first asked for."""

    def __init__(
        self, documents: Sequence[Collected], scored: Sequence[Collected], most_of_one: int
    ) -> None:
        """Take the documents, those of them that could be scored, and how many of a cluster are."""
        self._documents, self._scored = documents, scored
        self._most_of_one = most_of_one
        self.depths = depths_of(each.path for each in scored)
        """The fewest clusters first."""
        self._joined: dict[int, Mapping[str, str]] = {}
        self._levels: dict[int, Level] = {}

    def joined_at(self, depth: int) -> Mapping[str, str]:
        """Return the clusters of a level that are copies, each with the one whose side it is on."""
        if depth not in self._joined:
            pairs = [(cluster_at(each.path, depth), each.group) for each in self._documents]
            self._joined[depth] = joined_clusters(pairs)
        return self._joined[depth]

    def at(self, depth: int) -> Level:
        """Return the level, copies counted once."""
        if depth not in self._levels:
            joined = self.joined_at(depth)
            sizes = Counter(cluster_at(each.path, depth) for each in self._scored)
            for cluster in joined.keys() & sizes.keys():
                sizes[joined[cluster]] += sizes.pop(cluster)
            self._levels[depth] = level_of(depth, sizes, self._most_of_one)
        return self._levels[depth]


def choose_level(levels: Levels, wanted: HoldoutParts, rules: HoldoutRules) -> tuple[Level, str]:
    """Return the level with the largest clusters of which the gate still has enough, and why."""
    is_stated = rules.fraction is not None
    enough = rules.least_clusters if is_stated else max(ENOUGH_GATE_CLUSTERS, rules.least_clusters)
    last = levels.at(DOCUMENT)
    share = wanted.gate / max(1, last.clusters)
    for level in map(levels.at, levels.depths):
        # Where the domain says how many are wanted it means clusters, however unequal.
        found = (level.clusters if is_stated else level.effective) * share
        if found >= enough:
            return (
                level,
                f"of {counted(level.clusters, 'cluster')} ({level.name}) the gate has enough",
            )
    return last, f"no level has enough clusters, so that each document is one ({last.clusters:,})"


def counted_by(levels: Levels, whole: Level, rules: HoldoutRules) -> Level | None:
    """Return the level by which the gate counts, where that isn't what is held out as a whole."""
    larger = (levels.at(depth) for depth in levels.depths if depth < whole.depth)
    return next((level for level in larger if _is_counted_by(level, rules)), None)


def _is_counted_by(level: Level, rules: HoldoutRules) -> bool:
    return level.clusters >= rules.least_clusters and level.effective >= LEAST_EFFECTIVE


def as_many_as_are_scored(wanted: HoldoutParts, level: Level, rules: HoldoutRules) -> HoldoutParts:
    """Return the parts with no more for the gate than it scores of so many clusters."""
    most = level.clusters * rules.max_cluster_documents
    return replace(wanted, gate=min(wanted.gate, most))


def _scored(documents: Sequence[Collected], rules: HoldoutRules) -> list[Collected]:
    """Return what could be scored: the first of each group, unless it is too short."""
    seen: set[int] = set()
    found: list[Collected] = []
    for each in documents:
        if each.group not in seen and each.size_bytes >= rules.min_document_bytes:
            seen.add(each.group)
            found.append(each)
    return found


def _filled(
    plan: HoldoutPlan, scored: Sequence[Collected], wanted: HoldoutParts, rules: HoldoutRules
) -> HoldoutPlan:
    """Return the plan with the ends of each line."""
    sizes = Counter(plan.cluster_of(each.path) for each in scored)
    if plan.counted_depth >= plan.depth:
        ends, too_large = _Filling({"": sizes}, wanted, rules).fill()
        return replace(plan, ends=ends[""], trained_on=too_large)
    met: defaultdict[str, set[str]] = defaultdict(set)
    for each in scored:
        met[plan.cluster_of(each.path)].add(plan.counted_as(each.path))
    lines: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for cluster, size in sizes.items():
        lines[min(met[cluster])][cluster] = size
    ends, too_large = _Filling(lines, wanted, rules).fill()
    return replace(
        plan,
        ends=_of_newcomers(wanted, len(scored)),
        lines=ends,
        line_of={cluster: min(found) for cluster, found in met.items() if len(found) > 1},
        trained_on=too_large,
    )


def _of_newcomers(wanted: HoldoutParts, documents: int) -> Ends:
    """Return the ends of clusters that come later: they give as large a share as the others."""
    gate, dev = wanted.gate, wanted.gate + wanted.dev
    return (
        LINE * gate // max(1, documents),
        LINE * dev // max(1, documents),
        LINE * wanted.total // max(1, documents),
    )


class _Filling:
    """Takes clusters from the beginnings of lines, in turn, until each part has its documents."""

    def __init__(
        self, lines: Mapping[str, Sizes], wanted: HoldoutParts, rules: HoldoutRules
    ) -> None:
        self._salt = rules.salt
        self._wanted = (wanted.gate, wanted.dev, wanted.vault)
        self._sizes = {cluster: size for line in lines.values() for cluster, size in line.items()}
        self._left = {name: self._along(line) for name, line in lines.items()}
        # Of no line more than half is held out, so that something of each is trained on.
        # A line of one document may be held out, though: it is a cluster as a whole.
        self._room = {
            name: max(1.0, MOST_HELD_OUT * sum(line.values())) for name, line in lines.items()
        }
        self._reached = dict.fromkeys(lines, 0)
        self._ends: dict[str, list[int]] = {name: [] for name in lines}
        self._too_large: set[str] = set()
        largest = LARGEST_OF_PART * max(wanted.gate, rules.least_documents)
        self._largest = max(1.0, largest)
        self._least = min(rules.least_clusters, len(self._sizes) // 2) if len(lines) == 1 else 0

    def _along(self, line: Sizes) -> list[str]:
        """Return the clusters of a line, the last first."""
        return sorted(line, key=lambda each: (place_of(each, self._salt), each), reverse=True)

    def fill(self) -> tuple[dict[str, Ends], tuple[str, ...]]:
        """Return the ends of each line, and what is too large to be held out."""
        turns = sorted(self._left, key=lambda line: (place_of(line, self._salt), line))
        for number, documents in enumerate(self._wanted):
            least = self._least if number == 0 else 0
            taken = found = 0
            next_ones = self._in_turn(turns)
            while (taken < documents or found < least) and (cluster := next(next_ones, "")):
                taken, found = taken + self._sizes[cluster], found + 1
            for line in turns:
                self._ends[line].append(self._reached[line])
        ends = {line: (each[0], each[1], each[2]) for line, each in self._ends.items()}
        return ends, tuple(sorted(self._too_large))

    def _in_turn(self, turns: list[str]) -> Iterator[str]:
        """Yield the next cluster of each line, round after round, as it is taken."""
        while True:
            before = sum(map(len, self._left.values()))
            for line in tuple(turns):
                if cluster := self._next_of(line):
                    # Who has given one is asked last, by the next part too.
                    turns.remove(line)
                    turns.append(line)
                    yield cluster
            if before == sum(map(len, self._left.values())):
                return

    def _next_of(self, line: str) -> str:
        left = self._left[line]
        while left:
            size = self._sizes[left[-1]]
            if size > self._room[line] and size <= self._largest:
                return ""
            cluster = left.pop()
            self._reached[line] = place_of(cluster, self._salt) + 1
            if size <= self._largest:
                self._room[line] -= size
                return cluster
            self._too_large.add(cluster)
        return ""
