"""How people have steered one cycle: phases they let pass or had redone, settings they changed.

Owns the fold of these facts, and the names of items that are done again. Doesn't know phases, what
settings mean, or who asked people.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from jupiterd.cluster.facts.facts import WorkCompleted
from jupiterd.cluster.facts.phase_facts import (
    PhaseApproved,
    PhaseRedone,
    SettingChanged,
    SteeringFact,
)
from jupiterd.cluster.ledger.lww_registers import Order, Register

AGAIN = "~"
"""Stands in the recorded id of an item before the number of its redo; absent: never redone."""

Done = Mapping[tuple[int, str], WorkCompleted]


class Steering:
    """The steering of one cycle, as far as its facts are known; they may come in any order."""

    def __init__(self) -> None:
        self._approved: Register[tuple[int, str, int], PhaseApproved] = Register(
            greatest_wins=False
        )
        self._redone: Register[tuple[int, str, int], PhaseRedone] = Register(greatest_wins=False)
        self._settings: Register[tuple[str, int], SettingChanged] = Register(greatest_wins=True)

    def apply(self, fact: SteeringFact, order: Order) -> None:
        """Take in one fact."""
        match fact:
            case PhaseApproved():
                self._approved.offer((fact.round, fact.phase, fact.redo), fact, order)
            case PhaseRedone():
                self._redone.offer((fact.round, fact.phase, fact.redo), fact, order)
            case SettingChanged():
                key = fact.setting, fact.from_round
                self._settings.offer(key, fact, (fact.edit, *order))

    def redo_of(self, round_number: int, phase: str) -> int:
        """Return how often a phase of a round was redone; its items' ids end in it."""
        redone = (fact for fact in self._redone.facts.values() if fact.round == round_number)
        return max((fact.redo for fact in redone if phase in fact.phases), default=0)

    def redos(self, phase: str) -> Mapping[int, int]:
        """Return round -> how often a phase was redone in it, for the rounds where it was."""
        rounds = {fact.round for fact in self._redone.facts.values() if phase in fact.phases}
        return {number: self.redo_of(number, phase) for number in rounds}

    def next_redo(self, round_number: int) -> int:
        """Return a number that no redo of any phase of a round has had."""
        redone = (fact for fact in self._redone.facts.values() if fact.round == round_number)
        return 1 + max((fact.redo for fact in redone), default=0)

    def is_approved(self, round_number: int, phase: str) -> bool:
        """Say whether somebody has let pass what a phase has made by now."""
        return (round_number, phase, self.redo_of(round_number, phase)) in self._approved.facts

    def settings(self, round_number: int) -> dict[str, str]:
        """Return the values that were changed, as they are in force for a round."""
        changed = sorted(self._settings.facts.values(), key=lambda fact: fact.from_round)
        return {fact.setting: fact.value for fact in changed if fact.from_round <= round_number}

    def setting_edit(self, setting: str, from_round: int) -> int:
        """Return the edit number of a changed value; the next one carries one more."""
        fact = self._settings.facts.get((setting, from_round))
        return fact.edit if fact else 0

    def recorded_id(self, round_number: int, phase: str, item: str) -> str:
        """Return the id under which an item of the last redo is recorded."""
        redo = self.redo_of(round_number, phase)
        return f"{item}{AGAIN}{redo}" if redo else item

    def counting(self, done: Done) -> Done:
        """Return the work of each phase's last redo, under the ids of its items without a mark."""
        if not self._redone.facts:
            return done
        counting: dict[tuple[int, str], WorkCompleted] = {}
        for (round_number, recorded), fact in done.items():
            item, _, redo = recorded.partition(AGAIN)
            if redo == str(self.redo_of(round_number, fact.phase) or ""):
                counting[round_number, item] = replace(fact, item=item)
        return counting

    def placed(self) -> Iterator[tuple[Order, SteeringFact]]:
        """Return the facts in force with the order of their entries."""
        for register in (self._approved, self._redone, self._settings):
            yield from register.placed()

    def digest(self) -> list[Any]:
        """Return hashes of everything that tells two steerings apart."""
        return [part.digest() for part in (self._approved, self._redone, self._settings)]
