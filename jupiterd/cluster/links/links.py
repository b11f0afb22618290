"""The ways to one peer: which are known, how they do, and which one is used.

Owns what was measured of each path and the choice between them. Doesn't know how paths are found or
measured, or what goes over them.

1. A path costs its smoothed round trip time (a millisecond at least), times a weight for the kind
   of network that it crosses at its worse end, for IPv6 (rings of MLX need IPv4), for loss, and for
   less bandwidth than another one has, where both were measured. Two on one wire take as long.
2. A path that works is left for one that costs half of it or less, and has for thirty seconds. In
   the first seconds of a link, when nothing runs over it yet, the cheapest is taken at once. The
   better of two addresses on one wire is taken when they are over: a move then would hold up the
   joining, and gain nothing.
3. A path that doesn't answer is left at once, if another one does.
4. Of the two ends the smaller node id decides by these rules and tells the other one, which follows
   as long as that path answers it, and decides by itself where it doesn't or nobody tells it.

Every decision comes with its reason.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from jupiterd.cluster.values.interface_kind import LOOPBACK, InterfaceKind, is_loopback
from jupiterd.cluster.values.link_quality import LinkQuality

GAIN: Final = 2.0
CARRIES_S: Final = 3600.0
"""How long it counts what a path was measured to carry: people do that by hand, and move on."""
HOLD_S: Final = 30.0
SETTLING_S: Final = 10.0
CHOICE_LASTS_S: Final = 120.0
"""The other end's choice counts for so long; it is told again well before."""

LOOK_S: Final = 10.0
"""How often the paths are measured where there is a choice between them."""
FIRST_LOOKS_S: Final = 2.0
"""In the first seconds of a link the choice is made at once: it mustn't hang on one reading."""

DOUBT_S: Final = 1.75
"""After so long without an answer over the path in use, all are asked; two followers beat once a
second."""

ASK_AGAIN_S: Final = 0.5
GIVE_UP_S: Final = 30.0
"""After so long a peer is off rather than its path: it is asked as rarely as at other times."""

MAX_PATHS: Final = 8

SHORTEST_S: Final = 0.001
"""Round trips below this are alike: what differs is how busy the machines are."""

KIND_WEIGHT: Final = 3.0
IPV6_WEIGHT: Final = 2.0
SMOOTHING: Final = 0.25
LEAST_LOSS: Final = 0.05
"""Less is forgotten: one answer that failed to come counts for a minute, and no longer."""
NEVER: Final = -math.inf


@dataclass(frozen=True)
class Path:
    """One way to a peer."""

    target: str
    """host:port where the peer answers."""
    source: str
    """The address of ours that it leaves from; empty where it can't be lost."""
    interface: str
    """Ours."""
    kind: InterfaceKind
    """Of the worse of both ends."""

    @property
    def is_ipv6(self) -> bool:
        """Say whether it needs IPv6."""
        return self.target.startswith("[")

    def is_on_the_wire_of(self, other: "Path") -> bool:
        """Say whether only the addresses differ, as far as we know."""
        return (self.interface, self.kind) == (other.interface, other.kind)

    def is_better_address_than(self, other: "Path") -> bool:
        """Say whether it is the better address on the same wire."""
        return self.is_on_the_wire_of(other) and other.is_ipv6 and not self.is_ipv6


@dataclass
class _Measured:
    path: Path
    probed_s: float = NEVER
    answered_s: float = NEVER
    rtt_s: float | None = None
    loss: float = 0.0
    is_dead: bool = False
    bits_per_s: float | None = None
    carried_s: float = NEVER
    """When it was measured how much it carries."""
    cheaper_since_s: float | None = None


class Links:
    """The paths to one peer."""

    def __init__(self, *, decides: bool) -> None:
        """`decides` says that the choice is ours: our node id is the smaller one."""
        self._decides = decides
        self._paths: dict[str, _Measured] = {}
        self._began_s: float | None = None
        self._their_choice: tuple[str, float] | None = None
        self.active = ""
        """The target in use."""
        self.reason = ""
        """Why that one is used."""

    def __len__(self) -> int:
        return len(self._paths)

    @property
    def targets(self) -> list[str]:
        """The targets that are known, the one in use first."""
        return sorted(self._paths, key=lambda target: target != self.active)

    @property
    def paths(self) -> list[Path]:
        """The paths that are known, the one in use first."""
        return [self._paths[target].path for target in self.targets]

    @property
    def decides(self) -> bool:
        """Say whether our choice is the one that counts."""
        return self._decides

    @property
    def source(self) -> str:
        """The address of ours that the path in use leaves from; empty where it can't be lost."""
        return self._paths[self.active].path.source if self.active in self._paths else ""

    @property
    def is_dead(self) -> bool:
        """Say whether the path in use is known to be dead."""
        return self.active in self._paths and self._paths[self.active].is_dead

    @property
    def has_another(self) -> bool:
        """Say whether there is a path beside the one in use that isn't known to be dead."""
        return any(not seen.is_dead for t, seen in self._paths.items() if t != self.active)

    @property
    def quality(self) -> LinkQuality | None:
        """Return what is known of the path in use; None where there is none."""
        seen = self._paths.get(self.active)
        return None if seen is None else LinkQuality(seen.path.kind, seen.rtt_s, seen.bits_per_s)

    def sources(self) -> frozenset[str]:
        """Return the addresses of ours that paths leave from."""
        return frozenset(seen.path.source for seen in self._paths.values() if seen.path.source)

    def learn(self, now: float, path: Path) -> None:
        """Take up a path that has just been proved to lead to the peer, or where it leaves now."""
        known = self._paths.get(path.target)
        if known is not None:
            if known.path != path:  # another wire, or another end of it
                known.bits_per_s = None
            known.path = path
            return
        if len(self._paths) >= MAX_PATHS:
            self._forget_one()
        self._began_s = now if self._began_s is None else self._began_s
        self._paths[path.target] = _Measured(path, answered_s=now)

    def use(self, target: str, reason: str) -> None:
        """Take note that the link is made over this path."""
        if target in self._paths:
            self._paths[target].is_dead = False
            self._set_active(target, reason)

    def answered(self, now: float, target: str, rtt_s: float) -> None:
        """Take in one measurement."""
        if (seen := self._paths.get(target)) is not None:
            before_s = seen.rtt_s if seen.rtt_s is not None and not seen.is_dead else rtt_s
            # Two machines that have just met are busy, which makes a round trip longer, never less.
            is_better = self._is_settling(now) and rtt_s < before_s
            seen.rtt_s = rtt_s if is_better else before_s + SMOOTHING * (rtt_s - before_s)
            seen.loss -= SMOOTHING * seen.loss
            seen.answered_s, seen.is_dead = now, False

    def missed(self, now: float, target: str) -> None:
        """Take in that a path didn't answer in time; one that carries other things isn't dead.

        While it is dead nothing more is held against it: a cable that was out for long loses no
        more, once it is back, than one that was out for a moment.
        """
        if (seen := self._paths.get(target)) is not None:
            if not seen.is_dead:
                seen.loss += SMOOTHING * (1.0 - seen.loss)
            seen.is_dead = target != self.active or self._silent_s(now) > DOUBT_S
            seen.cheaper_since_s = None

    def carried(self, at_s: float) -> None:
        """Take in when the path in use last brought an answer to anything."""
        seen = self._paths.get(self.active)
        if seen is not None and at_s > seen.answered_s:
            seen.answered_s, seen.is_dead = at_s, False

    def lose(self, sources: frozenset[str]) -> None:
        """Take in that these addresses of ours are gone: nothing leaves from them any more."""
        for seen in self._paths.values():
            if seen.path.source in sources:
                seen.is_dead, seen.cheaper_since_s = True, None

    def measured(self, now: float, target: str, bits_per_s: float) -> None:
        """Take in how much a path carries; that counts for an hour."""
        if (seen := self._paths.get(target)) is not None:
            seen.bits_per_s, seen.carried_s = bits_per_s, now

    def note_choice(self, now: float, targets: Iterable[str]) -> bool:
        """Take in what the other end uses, in the ways we write it; say whether we know it."""
        known = [target for target in targets if target in self._paths]
        known.sort(key=lambda target: (self._paths[target].is_dead, target != self.active))
        if known:
            self._their_choice = known[0], now
        return bool(known)

    def due(self, now: float) -> list[str]:
        """Return the paths to be measured now; the caller does it, and is not asked to twice."""
        if len(self._paths) < 2:
            return []
        silent_s = self._silent_s(now)
        is_doubtful = silent_s > DOUBT_S
        interval_s = FIRST_LOOKS_S if self._is_settling(now) else LOOK_S
        if DOUBT_S < silent_s < GIVE_UP_S:
            interval_s = ASK_AGAIN_S
        found = [
            target
            for target, seen in self._paths.items()
            if now - seen.probed_s >= interval_s and (is_doubtful or self._is_worth_a_look(target))
        ]
        for target in found:
            self._paths[target].probed_s = now
        return found

    def choose(self, now: float) -> bool:
        """Decide which path is used; say whether that is another one than before."""
        before = self.active
        for seen in self._paths.values():
            if now - seen.carried_s > CARRIES_S:
                seen.bits_per_s = None
        target, reason = self._choice(now)
        if target and target != before:
            self._set_active(target, reason)
        return self.active != before

    def to_plain(self, now: float) -> list[dict[str, Any]]:
        """Return what is known of each path, for people and scripts; the one in use first."""
        return [
            {
                "target": target,
                "source": seen.path.source,
                "interface": seen.path.interface,
                "kind": LOOPBACK if is_loopback(target) else seen.path.kind.label,
                "rtt_ms": None if seen.rtt_s is None else round(seen.rtt_s * 1000, 3),
                "loss": round(seen.loss, 3),
                "mbit_per_s": None if seen.bits_per_s is None else round(seen.bits_per_s / 1e6, 1),
                "answered_s": round(max(0.0, now - seen.answered_s), 1),
                "answers": not seen.is_dead,
                "active": target == self.active,
                "reason": self.reason if target == self.active else "",
            }
            for target in self.targets
            for seen in (self._paths[target],)
        ]

    def _is_settling(self, now: float) -> bool:
        return self._began_s is None or now - self._began_s < SETTLING_S

    def _silent_s(self, now: float) -> float:
        """Return for how long nothing has come over the path in use."""
        active = self._paths.get(self.active)
        return math.inf if active is None else now - active.answered_s

    def _choice(self, now: float) -> tuple[str, str]:
        active, chosen = self._paths.get(self.active), self._chosen_path(now)
        answering = [seen for seen in self._paths.values() if not seen.is_dead]
        proved = [seen for seen in answering if seen.answered_s >= seen.probed_s]
        if chosen is not None and chosen is not active and chosen in proved:
            return chosen.path.target, "the other end chose it"
        if active is not None and not active.is_dead:
            return self._chosen if chosen is not None else self._cheaper(now, active, answering)
        if proved:
            return self._best(proved).path.target, f"{self.active} doesn't answer"
        return self._chosen

    @property
    def _chosen(self) -> tuple[str, str]:
        return self.active, self.reason

    def _best(self, among: Iterable[_Measured]) -> _Measured:
        return min(among, key=lambda seen: (self._cost(seen), seen.path.target))

    def _chosen_path(self, now: float) -> _Measured | None:
        """Return the other end's choice, where it counts and isn't known to be dead."""
        if (
            self._decides
            or self._their_choice is None
            or now - self._their_choice[1] > CHOICE_LASTS_S
        ):
            return None
        seen = self._paths.get(self._their_choice[0])
        return None if seen is None or seen.is_dead else seen

    def _cheaper(
        self, now: float, active: _Measured, answering: Iterable[_Measured]
    ) -> tuple[str, str]:
        is_settling = self._is_settling(now)
        proved: list[_Measured] = []
        for seen in answering:
            is_cheaper = self._cost(active) >= GAIN * self._cost(seen, beside=active)
            began_s = now if seen.cheaper_since_s is None else seen.cheaper_since_s
            seen.cheaper_since_s = began_s if is_cheaper else None
            is_at_once = is_settling != seen.path.is_better_address_than(active.path)
            hold_s = 0.0 if is_at_once else HOLD_S
            proved += [seen] if is_cheaper and began_s <= now - hold_s else []
        if not proved:
            return self._chosen
        best = self._best(proved)
        return best.path.target, f"better than {self.active}: {_difference(active, best)}"

    def _cost(self, seen: _Measured, beside: _Measured | None = None) -> float:
        """Return what using a path costs, in weighted seconds.

        `beside` one on the same wire it has that one's round trip time: what was measured of both
        differs by how busy the machines were.
        """
        is_alike = beside is not None and seen.path.is_on_the_wire_of(beside.path)
        rtt_s = beside.rtt_s if beside is not None and is_alike else seen.rtt_s
        cost = max(SHORTEST_S, rtt_s or 0.0) * KIND_WEIGHT ** int(seen.path.kind)
        if seen.path.is_ipv6:
            cost *= IPV6_WEIGHT
        best = max((other.bits_per_s or 0.0 for other in self._paths.values()), default=0.0)
        if seen.bits_per_s:
            cost *= best / seen.bits_per_s
        return cost if seen.loss < LEAST_LOSS else cost / (1.0 - min(seen.loss, 0.9))

    def _is_worth_a_look(self, target: str) -> bool:
        """Say whether measuring it could change anything while the path in use works.

        Another address on the same wire says nothing new, unless it is the better kind of address.
        """
        active, seen = self._paths[self.active], self._paths[target]
        if seen is active:
            return any(self._is_worth_a_look(other) for other in self._paths if other != target)
        is_other_wire = not seen.path.is_on_the_wire_of(active.path)
        return is_other_wire or seen.path.is_better_address_than(active.path)

    def _set_active(self, target: str, reason: str) -> None:
        for seen in self._paths.values():
            seen.cheaper_since_s = None
        self.active, self.reason = target, reason

    def _forget_one(self) -> None:
        """Make room: of those not in use the one that answered longest ago goes."""
        idle = [target for target in self._paths if target != self.active]
        del self._paths[min(idle, key=lambda target: self._paths[target].answered_s)]


def _difference(active: _Measured, best: _Measured) -> str:
    if best.path.kind is not active.path.kind:
        return f"{best.path.kind.label} instead of {active.path.kind.label}"
    if active.path.is_ipv6 and not best.path.is_ipv6:
        return "IPv4 instead of IPv6"
    if best.rtt_s is not None and active.rtt_s is not None and best.rtt_s * GAIN <= active.rtt_s:
        return f"{best.rtt_s * 1000:.1f} ms instead of {active.rtt_s * 1000:.1f} ms"
    if best.bits_per_s and active.bits_per_s and best.bits_per_s > active.bits_per_s:
        return f"{best.bits_per_s / 1e6:.0f} Mbit/s instead of {active.bits_per_s / 1e6:.0f}"
    return "it loses less"
