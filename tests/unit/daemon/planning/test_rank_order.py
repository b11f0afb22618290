"""What members tell of their links decides who stands beside whom."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jupiterd.cluster.planning.engines import TORCH, EngineChoice
from jupiterd.cluster.values.interface_kind import InterfaceKind
from jupiterd.cluster.values.link_quality import MAX_QUALITIES, LinkQuality
from jupiterd.daemon.links.peers import Peers
from jupiterd.daemon.planning.rank_order import by_links, told_qualities
from jupiterd.ids import NodeId
from tests.support.daemon.term_parts import connected

A, B, C, D = (NodeId(letter * 32) for letter in "abcd")
THUNDERBOLT = LinkQuality(InterfaceKind.THUNDERBOLT)
WIFI = LinkQuality(InterfaceKind.WIFI)
Views = Mapping[NodeId, Mapping[NodeId, LinkQuality]]


@dataclass(frozen=True)
class SeenLinks:
    """How good the links to a peer are."""

    quality: LinkQuality


@dataclass(frozen=True)
class SeenPeer:
    """A peer that A has links to."""

    node: NodeId
    links: SeenLinks


@dataclass(frozen=True)
class TellingPeer:
    """A peer that has told of its own links."""

    reported_links: Mapping[str, LinkQuality]


class SeenPeers(Peers):
    """As much of the links to others as their order needs; A leads, and its links are its own."""

    def __init__(self, views: Views) -> None:
        self._views = views

    def __iter__(self) -> Iterator[Any]:
        for node, quality in self._views[A].items():
            yield SeenPeer(node, SeenLinks(quality))

    def get(self, node: NodeId) -> Any:
        told = {other[:8]: seen for other, seen in self._views.get(node, {}).items()}
        return TellingPeer(told) if node in self._views else None


def ordered(gang: tuple[NodeId, ...], views: Views) -> EngineChoice:
    return by_links(connected(SeenPeers(views), A), EngineChoice(TORCH, gang, "as asked", "gloo"))


def test_links_between_others_count_as_much_as_the_leaders_own() -> None:
    views = {
        A: {B: WIFI, C: THUNDERBOLT, D: THUNDERBOLT},
        C: {D: WIFI, B: THUNDERBOLT},
        D: {B: THUNDERBOLT},
    }
    choice = ordered((A, B, B, C, D), views)
    assert choice.gang in {(A, C, B, B, D), (A, D, B, B, C)}
    assert choice.reason.startswith("as asked; ordered by links: a megabyte takes 1.4 ms")
    assert choice.label == "torch/gloo"


def test_of_two_ends_that_disagree_the_worse_opinion_counts() -> None:
    fast = {A: {B: THUNDERBOLT, C: THUNDERBOLT, D: THUNDERBOLT}, B: {C: THUNDERBOLT}}
    views = {**fast, C: {D: THUNDERBOLT}, D: {B: THUNDERBOLT}}
    assert ordered((A, B, C, D), views).gang == (A, B, C, D)
    doubting = {**views, B: {A: WIFI, C: THUNDERBOLT}}
    assert ordered((A, B, C, D), doubting).gang == (A, C, B, D)


def test_links_that_nobody_tells_of_leave_the_order_as_it_is() -> None:
    choice = ordered((D, B, A, C), {A: {}})
    assert (choice.gang, choice.reason) == ((D, B, A, C), "as asked")


def test_others_are_told_of_so_many_links_and_no_more() -> None:
    many = {NodeId(f"{number:08}" + "0" * 24): WIFI for number in range(40)}
    peers = SeenPeers({A: many})
    assert len(told_qualities(peers)) == MAX_QUALITIES
