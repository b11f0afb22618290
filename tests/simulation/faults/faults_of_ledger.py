"""Faults of the ledger and of the shells around it, as they are planted by `mutants`.

Owns the bad versions of methods of `ledger`, `progress_tree`, and of the simulated replica and
exchange: each takes the place of one, or wraps it.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from blake3 import blake3

from jupiterd.cluster.ledger.ledger import Ledger


def lacking_with_gaps(original: Callable[..., Any]) -> Callable[..., Any]:
    def lacking(ledger: Ledger, have: Any, limit_bytes: int) -> Any:
        entries, more = original(ledger, have, limit_bytes)
        return [entry for entry in entries if entry.index != 7], more

    return lacking


def chain_by_number(original: Callable[..., Any]) -> Callable[..., Any]:
    def check(ledger: Any, entry: Any, tip: Any) -> None:
        if not (tip.index and entry.index == tip.index + 1):
            original(ledger, entry, tip)

    return check


def chain_of_any_terms(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda ledger, entry, tip: original(ledger, entry, replace(tip, term=0))


def facts_of_the_longest(original: Callable[..., Any]) -> Callable[..., Any]:
    def add(ledger: Any, entry: Any) -> bool:
        longest = max(ledger.tips().values(), default=0)
        if entry.index >= longest:
            return original(ledger, entry)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ledger._state, "apply", lambda fact, order: None)
            return original(ledger, entry)

    return add


def head_of_numbers(ledger: Ledger) -> str:
    tips = sorted(f"{writer} {index}" for writer, index in ledger.tips().items())
    return blake3(repr(tips).encode()).hexdigest()


def line_by_arrival(tree: Any) -> Any:
    if tree._leaves is None:
        tree._leaves = tuple(tree._find_leaves())
    return tree._leaves


def adopt_tips_alone(original: Callable[..., Any]) -> Callable[..., Any]:
    def adopt(ledger: Any, snapshot: Any) -> None:
        with pytest.MonkeyPatch.context() as patch:
            if len(ledger):
                patch.setattr(ledger._state, "apply", lambda fact, order: None)
            original(ledger, snapshot)

    return adopt


def adopt_older_tips(original: Callable[..., Any]) -> Callable[..., Any]:
    def adopt(ledger: Any, snapshot: Any) -> None:
        original(ledger, snapshot)
        for writer, tip in snapshot.tips.items():
            ledger._chains[writer].skip_to(tip)

    return adopt


def absorb_in_memory(replica: Any, raws: Any) -> int:
    new = [entry.raw for raw in raws if (entry := replica._admit(raw)) is not None]
    replica._unsaved += new
    return len(new)


def open_at_once(anti_entropy: Any, leader_term: Any, nodes: Any) -> None:
    anti_entropy._process.world.witness.unites(anti_entropy._process, leader_term, nodes)
    leader_term.open()
