"""Promoting a student, and rolling one back: the commands that do it.

Owns their checks and what they record; they run at the leader. A promoted student generates from
the next round on whose generating hasn't begun (`cycle.generation.promotion`): a round's items must
not change under way. Of a cycle that has ended that is the one that it may be extended by. In a
domain without templates nothing is generated, so that it holds at once
(`cycle.generation.promoted_models`).
"""

from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from jupiterd.cluster.facts.steering import StudentSteered
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.values.bounds import edit_after
from jupiterd.cycle.base.work_item import Phase
from jupiterd.daemon.catalog.cycle_lookup import meant_cycle
from jupiterd.daemon.catalog.generator_state import domain_of, has_templates
from jupiterd.daemon.catalog.model_catalog import CANDIDATE, models_of
from jupiterd.daemon.catalog.round_history import active_generators_of, promoted_models_of
from jupiterd.daemon.leader.term import Term
from jupiterd.daemon.serving.named_models import named_model, promoted_now
from jupiterd.errors import ConflictError, NotFoundError, StudentOnTrialError, UsageError
from jupiterd.ids import ArtifactId, CycleId, short
from jupiterd.protocol.commands.cycle_commands import PromoteModel, RollBackStudent

if TYPE_CHECKING:  # its models take 8 MB, idle or not
    from jupiterd.cycle.domain.domain import Domain


async def roll_back(term: Term, command: RollBackStudent) -> dict[str, Any]:
    """Take the newest student out of force; whoever was before it comes back.

    Raises:
        ConflictError: no student is in force, or promoted.
        NotFoundError: there is no such cycle.
        UsageError: several ids begin so.
    """
    done = await _rolled_back(term, command)
    now = promoted_now(term.state, models_of(term.state))
    return {**done, "promoted": None if now is None else now.name}


async def _rolled_back(term: Term, command: RollBackStudent) -> dict[str, Any]:
    cycle, begun = meant_cycle(term.state, command.cycle or "", first_going_on=True)
    if appointed := _appointed(cycle):  # by people, and where text is written not in force yet
        student = max(appointed, key=attrgetter("edit")).student
        return await _steer(term, cycle, begun.cycle, student, is_promoted=False)
    domain = domain_of(cycle)
    student = "" if domain is None else _newest(cycle, domain)
    if not student:
        is_silent = domain is not None and not domain.wants_generated_text
        what = "is promoted" if is_silent else "generates"
        raise ConflictError(
            f"no student of cycle {short(begun.cycle)} {what}", "jupiterctl cycle status"
        )
    return await _steer(term, cycle, begun.cycle, student, is_promoted=False)


def _newest(cycle: CycleState, domain: "Domain") -> str:
    writing = active_generators_of(cycle, domain).newest
    if domain.wants_generated_text:
        return writing
    return promoted_models_of(cycle, domain).newest or writing


async def promote(term: Term, command: PromoteModel) -> dict[str, Any]:
    """Let a round's model generate, whatever the gate said: first a tenth, then in full.

    Where nothing is generated, it is the cycle's promoted model.

    Raises:
        ConflictError: it generates already, or is the promoted one.
        NotFoundError: there is no such model.
        StudentOnTrialError: another's trial would end, and `replaces` doesn't say so.
        UsageError: it is no model that a round has trained, or of a round that isn't over.
    """
    model = named_model(term.state, command.model)
    cycle = term.state.cycles[model.run]
    if model.kind != CANDIDATE or model.round > cycle.rounds_committed:
        raise UsageError(
            f"{model.name} is no model of a round that is over", "jupiterctl model list shows them"
        )
    domain = domain_of(cycle)
    if domain is not None and model.artifact in active_generators_of(cycle, domain).students:
        raise ConflictError(f"{model.name} generates already", "jupiterctl cycle status")
    if model.is_promoted and not has_templates(cycle):
        raise ConflictError(f"{model.name} is promoted already", "jupiterctl cycle status")
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
    edit = _next_edit(cycle, after, student)
    fact = StudentSteered(name, after, ArtifactId(student), is_promoted=is_promoted, edit=edit)
    await term.record(*(_given_up(cycle, student) if is_promoted else ()), fact)
    return {
        "cycle": name,
        "student": student,
        "from_round": after + 1,
        "has_ended": not cycle.goes_on,
        "generates": has_templates(cycle),
    }


def _next_edit(cycle: CycleState, after: int, student: str) -> int:
    """Return the number of what is said of a student now.

    Where nothing is written, it tells whom people have promoted last.
    """
    said = cycle.steered_after(after)
    counted = [each.edit for each in said if each.student == student or not has_templates(cycle)]
    return edit_after(max(counted)) if counted else 1


def _given_up(cycle: CycleState, student: str) -> list[StudentSteered]:
    """Return that the others whom people promoted have no trial in the round that comes.

    Where nothing is written they have none, and come back when the student goes.
    """
    others = [each for each in _appointed(cycle) if each.student != student]
    if not has_templates(cycle):
        return []
    return [replace(each, is_promoted=False, edit=edit_after(each.edit)) for each in others]


def _appointed(cycle: CycleState) -> list[StudentSteered]:
    """Return whom people have promoted for the next round that begins to generate."""
    found = cycle.steered_after(_last_round_to_generate(cycle))
    return [fact for fact in found if fact.is_promoted]


def _on_trial(cycle: CycleState) -> str:
    """Return whose trial is to be in the next round that begins to generate; empty for nobody's.

    A student whose trial is in the round that runs now is judged by that, whoever comes next. Where
    nothing is generated, nobody is on trial.
    """
    if not has_templates(cycle):
        return ""
    if appointed := _appointed(cycle):
        return appointed[0].student
    domain = domain_of(cycle)
    is_next = _last_round_to_generate(cycle) == cycle.rounds_committed
    return active_generators_of(cycle, domain).canary if is_next and domain is not None else ""


def _last_round_to_generate(cycle: CycleState) -> int:
    """Return the last round that has begun to generate; where a cycle runs, the current one.

    Of one that doesn't run the next begins with whatever is recorded by then; so does the current
    one where nothing is generated.
    """
    over = cycle.rounds_committed
    if not has_templates(cycle):
        return over
    begun = {fact.phase for (number, _), fact in cycle.completed.items() if number == over + 1}
    is_open = cycle.has_nothing_to_do and begun <= {Phase.COLLECT}
    return over if is_open else over + 1
