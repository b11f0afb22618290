"""The changes that people can make to a machine's membership and work, as actions.

Pure. Owns the commands and the texts of the questions. Doesn't know which machine is chosen.
"""

from collections.abc import Mapping
from typing import Any

from jupiter_tui.actions.action import Action
from jupiterd.formats import plain
from jupiterd.ids import short

Node = Mapping[str, Any]

PENDING = "pending"
"""The state of a machine that waits to be let in."""

YES = (
    "It walked in through the open door. With your yes it may approve, remove, merge, purge, "
    "promote and bring scripts."
)

OPEN_WINDOW = Action(
    ("cluster", "open"),
    "Let machines in",
    "Let new machines into the cluster for ten minutes?",
    ("Whoever is in the same network can join meanwhile; jupiterctl cluster close ends it.",),
)


def objection(what: str, node: Node) -> str:
    """Return why something can't be done about a machine, and what can; empty where it can."""
    name, waits = plain(node.get("name")), node.get("state") == PENDING
    if what == "approve" and waits and not node.get("words"):
        return f"{name} shows no words to compare yet; wait a moment"
    if what == "approve" and not waits and node.get("trusted") is not False:
        return f"{name} is a member already; A is for machines that wait or walked in"
    if what != "approve" and waits:
        return f"{name} isn't a member yet; A lets it in, and whoever isn't let in does no harm"
    return ""


def approve(node: Node) -> Action | None:
    """Return what approves a waiting machine, or trusts one that joined while the cluster was open.

    None where a waiting machine shows no words yet. The words that were compared are part of the
    command: the leader refuses a machine whose words have changed since.
    """
    if node.get("state") != PENDING and node.get("trusted") is False:
        return _action(node, "trust", "Is {} a machine that you trust?", (YES,))
    words = str(node.get("words") or "")
    if not words:
        return None
    consequences = (
        f"It shows these words if nobody stands between: {plain(words)}. Compare them first."
    )
    compared = ("--words", words)
    return _action(node, "approve", "Let {} into the cluster?", (consequences,), compared)


def remove(node: Node) -> Action:
    """Return what takes a machine out."""
    consequences = ("It can join again only with a new state folder. Others do its work.",)
    return _action(
        node, "remove", "Remove {} from the cluster, everywhere and for good?", consequences
    )


def drain(node: Node) -> Action:
    """Return what gives a machine no new work."""
    consequences = (
        "It leaves what trains after the running step, and loses none; it stays a member.",
    )
    return _action(node, "drain", "Give {} no new work?", consequences)


def resume(node: Node) -> Action:
    """Return what lets a machine work again."""
    return _action(node, "resume", "Let {} work again?", ("The leader chooses its role.",))


def _action(
    node: Node, verb: str, question: str, consequences: tuple[str, ...], more: tuple[str, ...] = ()
) -> Action:
    name, node_id = plain(node.get("name")), str(node.get("id"))
    named = f"{name} ({short(node_id)})"
    return Action(
        ("node", verb, short(node_id), *more),
        f"{verb.capitalize()} a node",
        question.format(named),
        consequences,
    )
