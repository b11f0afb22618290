"""Promoting a student as a generator, and rolling one back: the commands that do it.

Owns their checks and what they record; they run at the leader. What follows is for the next round
whose generating hasn't begun (`cycle.generation.promotion`): a round's items must not change under
way. Of a cycle that has ended that is the one that it may be extended by.
"""

from dataclasses import replace
from typing import Any

from jupiterd.cluster.facts.steering import StudentSteered
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.values.bounds import edit_after
from jupiterd.cycle.base.work_item import Phase
from jupiterd.daemon.catalog.cycle_lookup import meant_cycle
from jupiterd.daemon.catalog.generator_state import domain_of
from jupiterd.daemon.catalog.model_catalog import CANDIDATE, model_meant, models_of
from jupiterd.daemon.catalog.round_history import active_generators_of
from jupiterd.daemon.leader.term import Term
from jupiterd.errors import ConflictError, NotFoundError, StudentOnTrialError, UsageError
from jupiterd.ids import ArtifactId, CycleId, short
from jupiterd.protocol.commands.cycle_commands import PromoteModel, RollBackStudent


async def roll_back(term: Term, command: RollBackStudent) -> dict[str, Any]:
    """Take the newest student out of force; whoever wrote before it comes back.

    Raises:
        ConflictError: no student is in force.
        NotFoundError: there is no such cycle.
        UsageError: several ids begin so.
    """
    cycle, begun = meant_cycle(term.state, command.cycle or "", first_going_on=True)
    for fact in _appointed(cycle):  # by people, and not in force yet
        return await _steer(term, cycle, begun.cycle, fact.student, is_promoted=False)
    domain = domain_of(cycle)
    student = active_generators_of(cycle, domain).newest if domain is not None else ""
    if not student:
        raise ConflictError(
            f"no student of cycle {short(begun.cycle)} generates", "jupiterctl cycle status"
        )
    return await _steer(term, cycle, begun.cycle, student, is_promoted=False)


async def promote(term: Term, command: PromoteModel) -> dict[str, Any]:
    """Let a round's model generate, whatever the gate said: first a tenth, then in full.

    Raises:
        ConflictError: it generates already.
        NotFoundError: there is no such model.
        StudentOnTrialError: another's trial would end, and `replaces` doesn't say so.
        UsageError: it is no model that a round has trained, or of a round that isn't over.
    """
    model = model_meant(models_of(term.state), command.model)
    cycle = term.state.cycles[model.run]
    if model.kind != CANDIDATE or model.round > cycle.rounds_committed:
        raise UsageError(
            f"{model.name} is no model of a round that is over", "jupiterctl model list shows them"
        )
    domain = domain_of(cycle)
    if domain is not None and model.artifact in active_generators_of(cycle, domain).students:
        raise ConflictError(f"{model.name} generates already", "jupiterctl cycle status")
    tried = _on_trial(cycle)
    if tried and model.artifact != tried and not command.replaces:
        raise StudentOnTrialError(
            f"student {short(tried)} writes a tenth of round {_last_round_to_generate(cycle) + 1} "
            f"as its trial, which ends where {model.name} takes its place",
            "say so with --yes",
        )
    return await _steer(term, cycle, model.run, model.artifact, is_promoted=True)


async def _steer(
    term: Term, cycle: CycleState, name: CycleId, student: str, *, is_promoted: bool
) -> dict[str, Any]:
    after = _last_round_to_generate(cycle)
    if after < 1:
        raise NotFoundError("no round is over yet", "jupiterctl cycle status")
    before = [each for each in cycle.steered_after(after) if each.student == student]
    edit = edit_after(before[0].edit) if before else 1
    fact = StudentSteered(name, after, ArtifactId(student), is_promoted=is_promoted, edit=edit)
    others = [each for each in _appointed(cycle) if is_promoted and each.student != student]
    given_up = [replace(each, is_promoted=False, edit=edit_after(each.edit)) for each in others]
    await term.record(*given_up, fact)
    has_ended = not cycle.goes_on
    return {"cycle": name, "student": student, "from_round": after + 1, "has_ended": has_ended}


def _appointed(cycle: CycleState) -> list[StudentSteered]:
    """Return whom people have promoted for the next round that begins to generate."""
    found = cycle.steered_after(_last_round_to_generate(cycle))
    return [fact for fact in found if fact.is_promoted]


def _on_trial(cycle: CycleState) -> str:
    """Return whose trial is to be in the next round that begins to generate; empty for nobody's.

    A student whose trial is in the round that runs now is judged by that, whoever comes next.
    """
    if appointed := _appointed(cycle):
        return appointed[0].student
    domain = domain_of(cycle)
    is_next = _last_round_to_generate(cycle) == cycle.rounds_committed
    return active_generators_of(cycle, domain).canary if is_next and domain is not None else ""


def _last_round_to_generate(cycle: CycleState) -> int:
    """Return the last round that has begun to generate; where a cycle runs, the current one.

    Of one that doesn't run the next begins with whatever is recorded by then.
    """
    over = cycle.rounds_committed
    begun = {fact.phase for (number, _), fact in cycle.completed.items() if number == over + 1}
    is_open = cycle.has_nothing_to_do and begun <= {Phase.COLLECT}
    return over if is_open else over + 1
