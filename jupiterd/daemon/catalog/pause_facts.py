"""What is recorded where a cycle pauses: because people say so, or to wait for their answer.

Owns the reasons, where a cycle stands between its phases, and what may be done again there. Doesn't
know commands, or how a cycle is conducted.
"""

from jupiterd.cluster.facts.facts import CycleStarted, CycleStateSet
from jupiterd.cluster.ledger.cycle_state import PAUSED, CycleState
from jupiterd.cluster.values.bounds import edit_after
from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.phases.boundary import OF_DATA, REDOABLE, Place, place_before
from jupiterd.daemon.runtime.clock import wall_iso
from jupiterd.ids import CycleId

BY_A_PERSON = "paused by a person"

WAITING = "waiting for your answer"
"""So the reason begins of a pause at the end of a phase."""

INTERACTIVE = "interactive"
"""A setting that isn't the domain's: whether the cycle waits at the end of each phase."""


def paused_now(cycle: CycleState, of: CycleId, reason: str, node: str) -> CycleStateSet:
    """Return what pauses a cycle."""
    return CycleStateSet(of, PAUSED, reason, edit_after(cycle.wanted_edit), node, wall_iso())


def waiting_after(place: Place) -> str:
    """Return the reason of a pause that people are asked in."""
    round_number, phase = place
    return f"{WAITING} after {phase} of round {round_number}"


def is_interactive(cycle: CycleState, begun: CycleStarted) -> bool:
    """Say whether a cycle waits at the end of each phase, as far as people have said by now."""
    said = cycle.steering.settings(cycle.rounds_wanted).get(INTERACTIVE)
    return begun.interactive if said is None else said == "true"


def place_of(cycle: CycleState) -> Place | None:
    """Return the last phase that has results on the line that counts; None: nothing has.

    A training has them with its last checkpoint, not with earlier ones.
    """
    number = current_round(cycle)
    done, last = done_in(cycle, number), cycle.last_checkpoint(number)
    is_trained = last is not None and last.is_final
    return place_before(number, done if is_trained else done - {Phase.TRAIN})


def current_round(cycle: CycleState) -> int:
    """Return the round that a cycle is in; the one behind its last where all are over."""
    return cycle.rounds_committed + 1


def done_in(cycle: CycleState, round_number: int) -> frozenset[Phase]:
    """Return the phases of a round that have results."""
    done = {Phase(fact.phase) for fact in cycle.completed.values() if fact.round == round_number}
    is_training = cycle.last_checkpoint(round_number) is not None
    return frozenset(done | ({Phase.TRAIN} if is_training else set()))


def redoable(cycle: CycleState) -> tuple[Phase, ...]:
    """Return the phases of the round that may be done again: no data once it is trained on."""
    number = current_round(cycle)
    done = done_in(cycle, number)
    begun = any(attempt.round == number for attempt in cycle.attempts_opened.values())
    is_late = begun or Phase.TRAIN in done or bool(cycle.outer_steps_in(number))
    return tuple(each for each in REDOABLE if each in done and not (is_late and each in OF_DATA))
