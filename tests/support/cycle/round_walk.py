"""A round of a tiny domain walked through the table of phases, every item pretended done."""

from jupiterd.cycle.base.work_item import Phase, WorkResult
from jupiterd.cycle.domain.domain import Domain, parse_domain
from jupiterd.cycle.generation.promotion import ActiveGenerators
from jupiterd.cycle.phases.steps import CloseRound, RunItems, Step, TrainRound
from jupiterd.cycle.phases.table import next_step
from jupiterd.cycle.phases.view import RoundView
from jupiterd.cycle.training.plan import parse_model
from jupiterd.ids import ArtifactId, CycleId
from jupiterd.locations import config_folder

DOMAIN = """
version: 1
domain: tiny
title: A tiny domain
language: code:python
data_sources:
  - {kind: python_stdlib}
  - {kind: folder, path: /data, license: MIT}
generation:
  templates: [{kind: complete_function, samples: 10}]
holdout: {salt: s}
gate: {proxies: off}  # see test_proxy_items
"""

SHAPE = parse_model((config_folder() / "models" / "1m.yaml").read_text())


def tiny_domain() -> Domain:
    return parse_domain(DOMAIN, "tiny.yaml")


def view(completed: dict[str, WorkResult] | None = None, **changes: object) -> RoundView:
    fields = {
        "cycle": CycleId("c" * 16),
        "round": 1,
        "seed": 7,
        "started_at": "2026-01-01T00:00:00+00:00",
        "completed": completed or {},
        "candidate": None,
        "looks": 0,
    }
    return RoundView(**{**fields, **changes})


def artifact(name: str) -> ArtifactId:
    return ArtifactId(name.ljust(64, "0"))


def in_full(student: str) -> ActiveGenerators:
    return ActiveGenerators({"complete_function": (student,)})


def finish(step: Step, completed: dict[str, WorkResult]) -> None:
    """Pretend that every open item was done."""
    assert isinstance(step, RunItems)
    outputs = {
        "collect": ("documents", "state", "skipped"),
        "hold_out": ("train", "holdout", "plan", "dropped"),
        "generate": ("samples", "parents"),
        "clean": ("clean", "dropped"),
        "unite": ("kept", "dropped"),
        "pack": ("shards", "tokenizer"),
        "evaluate": ("scores",),
        "gate": ("verdict",),
    }
    for item in step.items:
        made = {name: artifact(f"{item.id}-{name}") for name in outputs[item.task]}
        counts = {"vault_documents": 9.0} if item.task == "hold_out" else {}
        completed[item.id] = WorkResult(made, counts)


def collect_all(completed: dict[str, WorkResult], **changes: object) -> None:
    """Pretend that a round's text was read, cleaned and parted."""
    for _ in range(3):
        step, _ = next_step(view(completed, **changes), tiny_domain(), SHAPE)
        finish(step, completed)


def walk(domain: Domain, completed: dict[str, WorkResult], **changes: object) -> list[Phase | str]:
    """Do what is asked for until the round is closed, and return the phases in their order."""
    seen: list[Phase | str] = []
    trained = None
    for _ in range(20):
        step, _ = next_step(view(completed, candidate=trained, **changes), domain, SHAPE)
        if isinstance(step, CloseRound):
            return [*seen, "close"]
        if isinstance(step, TrainRound):
            seen.append(Phase.TRAIN)
            trained = artifact(f"model-{changes.get('round', 1)}")
        else:
            seen += [step.phase] if step.phase not in seen else []
            finish(step, completed)
    raise AssertionError("the round never ends")


def inputs_of(step: Step) -> dict[str, ArtifactId]:
    assert isinstance(step, RunItems)
    return {name: each for item in step.items for name, each in item.inputs.items()}
