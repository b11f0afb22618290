"""The document of `gate run` and `cycle explain`: where a verdict lies, and what it was made of.

Owns its keys, and which verdict is meant. What isn't here is fetched from whoever has it. Decides
nothing: jupiterctl does, on the same machine, from these files.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jupiterd.cluster.facts.facts import VerdictReached
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.ledger.trunk import start_of
from jupiterd.cluster.values.run_names import Named, meant
from jupiterd.cycle.base.whole_counts import whole_count
from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.gate.record import VERDICT_FILE
from jupiterd.cycle.phases.view import item_id
from jupiterd.cycle.rounds.explanation import explain
from jupiterd.cycle.rounds.round_course import RoundCourse
from jupiterd.daemon.artifacts.artifact_cache import ArtifactCache
from jupiterd.daemon.queries.cycle.answers_of_round import answers_of_round
from jupiterd.daemon.queries.cycle.own_questions_of_round import (
    own_question_lines,
    own_questions_of_round,
)
from jupiterd.document_schema import SCHEMA
from jupiterd.errors import NotFoundError, UsageError
from jupiterd.ids import ArtifactId, short

MIN_DIGITS = 6
"""Of an id's beginning; fewer digits are the number of a round."""

_LIST = "jupiterctl cycle status shows the verdicts that there are"


@dataclass(frozen=True)
class _Judged:
    """A verdict, with the cycle that it is of."""

    cycle: CycleState
    fact: VerdictReached


async def verdict_document(
    state: State, artifact_cache: ArtifactCache, wanted: str
) -> dict[str, Any]:
    """Return where the verdict on CANDIDATE, or on CANDIDATE:INCUMBENT, lies.

    Either is a model's id, the beginning of one, or the number of a round of the newest cycle that
    has verdicts; left out, the last verdict is meant. The candidate may be CYCLE or CYCLE/ROUND,
    too: the last one of a cycle of that domain or id, or that of a round.

    Raises:
        NotFoundError: there is no such verdict, or nobody in reach has it.
        UsageError: several models' ids begin so.
    """
    candidate, _, incumbent = wanted.partition(":")
    judged = _meant(_verdicts(state), candidate)
    recorded = await _brought(artifact_cache, judged.fact)
    document = json.loads((recorded / VERDICT_FILE).read_text(encoding="utf-8"))
    given = document["given"]
    if incumbent:
        _check_compared(judged, incumbent, given)
    begun = judged.cycle.begun
    own = own_questions_of_round(judged.cycle, judged.fact.round, judged.fact.candidate)
    return {
        "schema": SCHEMA,
        "verdict": {
            "cycle": judged.fact.cycle,
            "domain": judged.cycle.label,
            "rounds": judged.cycle.rounds_wanted,
            "started_at": "" if begun is None else begun.started_at,
            "round": judged.fact.round,
            "verdict": judged.fact.verdict,
            "candidate": judged.fact.candidate,
            "folder": str(recorded),
            "explained": [*explain(document, _course(judged)), *own_question_lines(own)],
            "own_questions": own,
            "answers": await answers_of_round(
                artifact_cache, judged.cycle, judged.fact.round, judged.fact.candidate
            ),
            "material": await _material(artifact_cache, recorded, given),
        },
    }


def _course(judged: _Judged) -> RoundCourse:
    """Return how the judged round was trained, and whether it is the last."""
    cycle, number = judged.cycle, judged.fact.round
    last, before = cycle.last_checkpoint(number), cycle.checkpoint(start_of(cycle, number))
    packed = cycle.completed.get((number, item_id(number, Phase.PACK, 0)))
    began = 0 if before is None else before.tokens
    return RoundCourse(
        short(judged.fact.cycle),
        is_last=number >= cycle.rounds_wanted,
        steps=0 if last is None else last.step,
        tokens=0 if last is None else last.tokens - began,
        text_tokens=0 if packed is None else whole_count(packed.counts, "tokens"),
        max_steps=0 if cycle.started is None else int(cycle.started.settings.get("max_steps") or 0),
    )


def _verdicts(state: State) -> list[_Judged]:
    """Return every verdict of a line that counts, the newest cycle first, its last round first."""
    cycles = [each for each in state.cycles.values() if each.started is not None]
    newest = sorted(cycles, key=lambda cycle: cycle.start_order, reverse=True)
    return [
        _Judged(cycle, fact)
        for cycle in newest
        for _, fact in sorted(cycle.verdicts.items(), reverse=True)
    ]


def _meant(verdicts: Sequence[_Judged], candidate: str) -> _Judged:
    if not verdicts:
        raise NotFoundError("no gate has decided yet", "jupiterctl cycle watch")
    if not candidate:
        return verdicts[0]
    cycle, _, number = candidate.rpartition("/")
    if _is_round(number) and cycle:
        return _of_round(_of_cycle(verdicts, cycle), number, f"round {number} of {cycle}")
    if _is_round(candidate):
        newest = [each for each in verdicts if each.cycle is verdicts[0].cycle]
        return _of_round(newest, candidate, f"round {candidate}")
    found = [each for each in verdicts if _begins(each.fact.candidate, candidate)]
    if len({each.fact.candidate for each in found}) > 1:
        raise UsageError(f"{len(found)} models' ids begin with {candidate}", "give more digits")
    return (found or _of_cycle(verdicts, candidate))[0]


def _of_round(verdicts: Sequence[_Judged], number: str, what: str) -> _Judged:
    for each in verdicts:
        if each.fact.round == int(number):
            return each
    raise NotFoundError(f"there is no verdict on {what}", _LIST)


def _of_cycle(verdicts: Sequence[_Judged], wanted: str) -> list[_Judged]:
    """Return the verdicts of the newest cycle that is called so, its last round first."""
    if not (found := meant([Named(e, e.cycle.label, [e.fact.cycle]) for e in verdicts], wanted)):
        raise NotFoundError(f"there is no verdict on a model {wanted}, nor on a cycle", _LIST)
    return [each for each in found if each.cycle is found[0].cycle]


def _check_compared(judged: _Judged, incumbent: str, given: dict[str, Any]) -> None:
    """Raise NotFoundError where the candidate was compared with others than this one."""
    others = [str(given.get(name) or "") for name in ("incumbent", "generator")]
    named = judged.cycle.verdicts.get(int(incumbent)) if _is_round(incumbent) else None
    if any(
        model == named.candidate if named else _begins(model, incumbent)
        for model in others
        if model
    ):
        return
    names = " and ".join(dict.fromkeys(short(each) if each else "a baseline" for each in others))
    raise NotFoundError(
        f"the candidate of round {judged.fact.round} was compared with {names}, "
        f"not with {incumbent}",
        "leave --incumbent out, or name the one it was compared with",
    )


def _is_round(text: str) -> bool:
    return text.isdecimal() and len(text) < MIN_DIGITS


def _begins(model: str, digits: str) -> bool:
    return len(digits) >= MIN_DIGITS and model.startswith(digits)


async def _brought(artifact_cache: ArtifactCache, fact: VerdictReached) -> Path:
    try:
        return await artifact_cache.ensure(fact.artifact)
    except NotFoundError as error:
        raise NotFoundError(
            f"the verdict of round {fact.round} isn't in reach", "start the nodes that have it"
        ) from error


async def _material(
    artifact_cache: ArtifactCache, recorded: Path, given: dict[str, Any]
) -> list[str]:
    """Return the folders of what was decided on; of scores that have gone, the verdict's copy."""
    try:
        return [str(await artifact_cache.ensure(artifact)) for artifact in _pieces(given)]
    except NotFoundError:
        return [str(recorded)]


def _pieces(given: dict[str, Any]) -> Iterator[ArtifactId]:
    yield from (ArtifactId(str(given["scores"][name])) for name in sorted(given["scores"]))
