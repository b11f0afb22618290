"""The models that are stored and worth a name: which there are, and what was said of them.

Owns finding them among the facts, and which one people mean. Pure: it is handed the state. Doesn't
know files.

| kind | what it is | called |
|---|---|---|
| candidate | the model that a round of a cycle has trained | DOMAIN/ROUND |
| run | the last model of a training run that is over, or was stopped | the run's name |
| generator | what others made and a cycle generates with | its name |
| base | what others made and a cycle or a training run began with: listed nowhere, for it is \
what NAME/base means | what that was called where it began |
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

from jupiterd.cluster.facts.facts import CheckpointCommitted
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.island_runs import is_whole
from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.values.run_names import Named, meant
from jupiterd.cycle.runs.run_phases import evaluation_id
from jupiterd.daemon.catalog.generator_state import generation_document
from jupiterd.document_schema import finite
from jupiterd.errors import NotFoundError
from jupiterd.ids import ArtifactId, CycleId

CANDIDATE, RUN, GENERATOR, BASE = "candidate", "run", "generator", "base"


@dataclass(frozen=True)
class KnownModel:
    """One model."""

    artifact: ArtifactId
    kind: str
    run: CycleId
    """The cycle or training run that it is of."""
    label: str
    """What people call that, or a generator that others made."""
    round: int
    """0 for what others made."""
    step: int | None
    tokens: int | None
    """That it was trained on since the cycle began."""
    loss: float | None
    """Of its last step, in nats per token."""
    verdict: str
    """What the gate said; empty where nobody has judged it, or not yet."""
    val_bpb: float | None
    reason: str
    share: float = 0.0
    """Of a template's prompts that it writes in its cycle, from the next round on; the largest."""
    is_promoted: bool = False
    """Whether it is its cycle's promoted model: of those that write the newest, or, where no text
    is to be generated, the last one that the gate or a person has promoted."""

    @property
    def name(self) -> str:
        """What people call it, unless several of their cycles are of one domain."""
        return f"{self.label}/{self.round}" if self.kind == CANDIDATE else self.label

    @property
    def is_of_others(self) -> bool:
        """Say whether others made it: nothing is known of its text and its training."""
        return self.kind in {GENERATOR, BASE}

    def to_plain(self) -> dict[str, Any]:
        """Return its row for people and scripts."""
        return {
            "id": self.artifact,
            "name": self.name,
            "kind": self.kind,
            "run": self.run,
            "round": self.round or None,
            "verdict": self.verdict or None,
            "val_bpb": finite(self.val_bpb),
            "reason": self.reason or None,
            "writes": self.share > 0,
            "writing_share": self.share,
            "promoted": self.is_promoted,
            "step": self.step,
            "tokens": self.tokens,
            "loss": finite(self.loss),
        }


def models_of(state: State) -> list[KnownModel]:
    """Return the models, those of the newest run first, its last round first."""
    runs = sorted(state.cycles.values(), key=attrgetter("start_order"), reverse=True)
    return [model for run in runs if is_whole(run) for model in _of_run(run)]


def promoted_model(models: Iterable[KnownModel]) -> KnownModel | None:
    """Return the model that `promoted` means: that of the newest cycle which has one.

    None: no cycle has one.
    """
    return next((each for each in models if each.is_promoted), None)


def model_meant(models: Iterable[KnownModel], wanted: str) -> KnownModel:
    """Return the model that is called so, or whose id begins so; of several the newest.

    DOMAIN/ROUND, or CYCLE/ROUND, names that of a round.

    Raises:
        NotFoundError: there is none.
        UsageError: several ids begin so.
    """
    known = list(models)
    if exact := [each for each in known if wanted == each.name]:
        return exact[0]
    name, _, number = wanted.rpartition("/")
    if name and number.isdecimal():
        known = [each for each in known if each.round == int(number)]
        wanted_name = name
    else:
        wanted_name = wanted
    found = meant(
        [Named(each, each.label, [each.artifact, each.run]) for each in known], wanted_name
    )
    if not found:
        raise NotFoundError(f"there is no model {wanted}", "jupiterctl model list shows all")
    return found[0]


def _of_run(run: CycleState) -> Iterator[KnownModel]:
    if run.started is not None:
        of_cycle = [*reversed([*_candidates(run)]), *_named_generator(run, run.started.generator)]
        yield from _with_promotion(run, of_cycle)
    elif run.training is not None:
        yield from _trained(run)


def _candidates(cycle: CycleState) -> Iterator[KnownModel]:
    """Yield what each round has trained, as far as its training is over."""
    over = {done.round: done.final_checkpoint for done in cycle.rounds}
    for number in range(1, cycle.rounds_committed + 2):
        last = cycle.last_checkpoint(number)
        final = last.artifact if last is not None and last.is_final else ""
        if artifact := ArtifactId(over.get(number, final)):
            checkpoint = cycle.checkpoint(artifact)
            yield _candidate(cycle, number, artifact, checkpoint)


def _candidate(
    cycle: CycleState, number: int, artifact: ArtifactId, checkpoint: CheckpointCommitted | None
) -> KnownModel:
    said = cycle.verdicts.get(number)
    return KnownModel(
        artifact=artifact,
        kind=CANDIDATE,
        run=_id(cycle),
        label=cycle.label,
        round=number,
        step=None if checkpoint is None else checkpoint.step,
        tokens=None if checkpoint is None else checkpoint.tokens,
        loss=None if checkpoint is None else checkpoint.loss,
        verdict="" if said is None else said.verdict,
        val_bpb=None if said is None else said.val_bpb,
        reason="" if said is None else said.reason,
    )


def _trained(run: CycleState) -> Iterator[KnownModel]:
    last = run.last_checkpoint(1)
    if last is None or not (
        last.is_final or run.has_nothing_to_do
    ):  # one that was stopped has its last
        return
    scored = run.completed.get((1, evaluation_id(last.artifact)))
    val_bpb = None if scored is None else scored.summary.get("val_bpb")
    yield KnownModel(
        artifact=last.artifact,
        kind=RUN,
        run=_id(run),
        label=run.label,
        round=1,
        step=last.step,
        tokens=last.tokens,
        loss=last.loss,
        verdict="",
        val_bpb=None if val_bpb is None else float(val_bpb),
        reason="",
    )


def _named_generator(cycle: CycleState, said: Mapping[str, Any]) -> Iterator[KnownModel]:
    """Yield a generator that others made, where it is a folder: a server's model isn't here."""
    if said.get("artifact"):
        label = str(said.get("name") or GENERATOR)
        yield _of_others(GENERATOR, cycle, label, ArtifactId(str(said["artifact"])))


def brought_model(run: CycleState, artifact: ArtifactId) -> KnownModel:
    """Return the model that a cycle or training run began with, as it was called there."""
    return _of_others(BASE, run, brought_name(run) or BASE, artifact)


def brought_name(run: CycleState) -> str:
    """Return what people called the model that a cycle or training run began with."""
    if run.started is not None:
        return run.started.size
    return "" if run.training is None else run.training.model


def _of_others(kind: str, run: CycleState, label: str, artifact: ArtifactId) -> KnownModel:
    return KnownModel(
        artifact=artifact,
        kind=kind,
        run=_id(run),
        label=label,
        round=0,
        step=None,
        tokens=None,
        loss=None,
        verdict="",
        val_bpb=None,
        reason="",
    )


def _with_promotion(cycle: CycleState, models: Iterable[KnownModel]) -> Iterator[KnownModel]:
    """Yield a cycle's models with what each writes, and which of them is promoted."""
    document = generation_document(cycle)
    shares = _shares(document)
    for model in models:
        is_promoted = model.artifact == document["promoted"]
        yield replace(model, share=shares.get(model.artifact, 0.0), is_promoted=is_promoted)


def _shares(document: Mapping[str, Any]) -> dict[str, float]:
    """Return each generator in force with its share of a template's prompts, the largest."""
    found: dict[str, float] = {}
    for row in document["writers"]:
        found[row["generator"]] = max(found.get(row["generator"], 0.0), float(row["share"]))
    return found


def _id(run: CycleState) -> CycleId:
    return CycleId("") if run.begun is None else run.begun.cycle
