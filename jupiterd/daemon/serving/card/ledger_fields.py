"""What the ledger tells of a model to whoever talks to it: its verdict, its training, its text.

Owns the names of these fields. Pure: it is handed the state. No path of anybody's disk is among
them. Doesn't know a model's files, nor where it answers.

| field | what it is |
|---|---|
| name, kind | see `model_catalog` |
| verdict, reason | what the gate said |
| bits_per_byte | of held-out text |
| step, tokens | of its training |
| cycle, round | of which it is |
| trained_on, licence | names of the sources of its domain, and their licences |
"""

from typing import Any, Final

from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.state import State
from jupiterd.daemon.catalog.model_catalog import GENERATOR, KnownModel, models_of
from jupiterd.document_schema import finite
from jupiterd.errors import JupiterError
from jupiterd.ids import ArtifactId

BASE: Final = "base"
"""The kind of weights that a cycle began with."""


def ledger_fields(state: State, artifact: ArtifactId) -> dict[str, Any]:
    """Return what is known of a model; fields of which nothing is known are left out."""
    of_it = [model for model in models_of(state) if model.artifact == artifact]
    if not of_it:
        return {"kind": BASE}
    model = max(of_it, key=lambda each: each.share)
    told = _of_model(model) | _of_text(model, state.cycles[model.run])
    return {name: value for name, value in told.items() if value not in (None, "", [])}


def _of_model(model: KnownModel) -> dict[str, Any]:
    return {
        "name": model.name,
        "kind": model.kind,
        "verdict": model.verdict,
        "reason": model.reason,
        "bits_per_byte": finite(model.val_bpb),
        "step": model.step,
        "tokens": model.tokens,
        "cycle": model.run,
        "round": model.round or None,
    }


def _of_text(model: KnownModel, run: CycleState) -> dict[str, Any]:
    if run.started is None or model.kind == GENERATOR:
        return {}
    from jupiterd.cycle.domain.domain import parse_domain  # 8 MB, idle or not

    try:
        domain = parse_domain(run.started.domain_yaml, "domain.yaml")
    except JupiterError:  # of another version
        return {"domain": model.label}
    licences = dict.fromkeys(str(getattr(each, "license", "")) for each in domain.data_sources)
    return {
        "domain": model.label,
        "trained_on": [each.name for each in domain.data_sources],
        "licence": [each for each in licences if each],
    }
