"""What becomes of members whose versions differ.

Owns the words, and whether a leader's version is outnumbered. Doesn't know which versions are alike
(`versions`), or how a leader gives up its place.

Work never crosses versions: it goes to the nodes that run what the leader runs. While machines are
upgraded one after another the old ones go on with it; as soon as more machines that can work run
the new version, a leader of the old one lets one of those lead, and the work moves there.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from jupiterd.versions import UPGRADE, Kinship, is_older, kinship, series

SETTLE_S: Final = 20.0
"""A leader must have been outnumbered for so long: machines that start again come back by then."""


def why_idle(program: str, leaders: str) -> str:
    """Return why a node has no role beside a leader of another version."""
    return (
        f"it runs jupiterd {program} and the leader {leaders}: it works again once both are alike"
    )


def why_refused(program: str, leaders: str) -> str:
    """Return why a newcomer isn't let in; empty where its version stands in nobody's way."""
    if kinship(program, leaders) is not Kinship.APART:
        return ""
    which = "it" if is_older(program, leaders) else "this cluster"
    return (
        f"it runs jupiterd {program} and this cluster {leaders}, "
        f"more than one minor version apart; upgrade {which} first"
    )


def difference(name: str, program: str, leaders: str) -> tuple[str, str]:
    """Return a title and a hint about a member that isn't alike the leader; both empty if it is."""
    found = kinship(program, leaders)
    if found is Kinship.ALIKE:
        return "", ""
    apart = ", more than one minor version apart" if found is Kinship.APART else ""
    title = (
        f"{name} runs jupiterd {program} and the leader {leaders}{apart}: no work is given to it"
    )
    where = f"{name}" if is_older(program, leaders) else "the leader, and whoever else is older"
    return title, f"upgrade {where}: {UPGRADE}, then start jupiterd again"


def is_outnumbered(own: str, able: Iterable[str]) -> bool:
    """Say whether more machines that can work run some one other version than run ours.

    Args:
        own: this node's version.
        able: that of each node that could work; of this one too, where it could.
    """
    here = series(own)
    counts = Counter(found for version in able if (found := series(version)) is not None)
    alike = counts.pop(here, 0) if here is not None else 0
    return here is not None and max(counts.values(), default=0) > alike
