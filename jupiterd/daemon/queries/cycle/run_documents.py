"""The documents of `data list` and `data audit`.

Owns their keys. Changes nothing.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

from jupiterd.cluster.facts.facts import CheckpointCommitted, DataRequested
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.island_runs import is_whole
from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.values.run_names import Named, meant
from jupiterd.cycle.data.audit import Committed, RoundAudit, RoundTraining, audit
from jupiterd.cycle.data.instruction_rows import FORM_COUNT
from jupiterd.daemon.catalog.audit_round import round_document
from jupiterd.daemon.catalog.cycle_sources import purge_proofs
from jupiterd.daemon.catalog.dataset_catalog import data_sets
from jupiterd.daemon.catalog.islands_audit import (
    IslandRound,
    audit_round,
    island_proof,
    outer_keys,
    rounds_of_islands,
)
from jupiterd.daemon.queries.cluster.status_document import shown
from jupiterd.daemon.queries.cycle.round_data import round_rows
from jupiterd.daemon.queries.document_sources import DocumentSources
from jupiterd.document_schema import SCHEMA
from jupiterd.errors import JupiterError, NotFoundError
from jupiterd.ids import ArtifactId, CycleId, short
from jupiterd.store.artifacts import ArtifactStore

_Read = tuple[CheckpointCommitted, dict[str, Any] | None]
"""A checkpoint, and what it says of itself; None where it isn't here."""

STATE_FILE = "training_state/state.json"
"""File of a checkpoint that says how far the training of its weights was."""


async def data_document(sources: DocumentSources, run_id: str) -> dict[str, Any]:
    """Return every data set, the newest first, or one as it is being made."""
    state = sources.replica.state
    if not run_id:
        store = sources.artifact_cache.store
        rows = [_row(store, run, requested) for run, requested in data_sets(state)]
        rounds = await round_rows(state, sources.artifact_cache)
        return {"schema": SCHEMA, "data": rows, "rounds": rounds}
    run = state.cycles.get(CycleId(run_id))
    is_known = run is not None and run.requested is not None
    return {"schema": SCHEMA, "data": shown(sources, run) if run and is_known else None}


def _row(store: ArtifactStore, run: CycleState, requested: DataRequested) -> dict[str, Any]:
    prepared = run.prepared
    counts = (
        {} if prepared is None else {name: int(value) for name, value in prepared.counts.items()}
    )
    shards = None if prepared is None else prepared.outputs["shards"]
    failed = run.failed if prepared is None else None
    return {
        "id": requested.cycle,
        "name": requested.name,
        "state": _state(run),
        "source": requested.source["path"],
        "kind": requested.source["kind"],
        "tokens": counts.get("tokens"),
        "documents": counts.get("documents"),
        "bytes": counts.get("bytes"),
        "vocab_size": counts.get("vocab_size"),
        "holdout_documents": counts.get("holdout_documents"),
        "form": _form(counts),
        "counted_tokens": counts.get("counted_tokens"),
        "shards": shards,
        "tokenizer": None if prepared is None else prepared.outputs["tokenizer"],
        "held_here": shards is not None and store.holds(shards),
        "made_by": None if prepared is None else prepared.node,
        "started_at": requested.started_at,
        "failure": None if failed is None else failed.message,
    }


def _form(counts: Mapping[str, int]) -> str | None:
    """Return what its rows hold; None where nobody noted it."""
    names = (name.removeprefix(FORM_COUNT) for name in counts if name.startswith(FORM_COUNT))
    return next(names, None)


def _state(run: CycleState) -> str:
    if run.prepared is not None:
        return "ready"
    return (
        "failed" if run.failed is not None else "stopped" if run.has_nothing_to_do else "preparing"
    )


async def audit_document(state: State, store: ArtifactStore, wanted: str) -> dict[str, Any]:
    """Return the proof of one cycle or training run, or of every one that has a checkpoint.

    Raises:
        NotFoundError: nothing that has trained is called so.
        UsageError: several ids begin so.
    """
    runs = sorted(
        (
            run
            for run in state.cycles.values()
            if run.begun is not None
            and is_whole(run)
            and (run.canonical_branch() or run.outer_branch())
        ),
        key=lambda run: run.start_order,
        reverse=True,
    )
    chosen = meant(map(_named, runs), wanted) if wanted else runs
    if wanted and not chosen:
        raise NotFoundError(
            f"no cycle or training run with a checkpoint is called {wanted}",
            "jupiterctl data audit looks at all of them",
        )
    return {"schema": SCHEMA, "audit": [await _audited(state, store, run) for run in chosen]}


def _named(run: CycleState) -> Named[CycleState]:
    return Named(run, run.label, [run.begun.cycle] if run.begun is not None else [])


async def _audited(state: State, store: ArtifactStore, run: CycleState) -> dict[str, Any]:
    """Prove one line; a long one has thousands of files to read, which holds nobody up."""
    purged = purge_proofs(run, state)
    is_clean = all(part["samples"] == 0 for each in purged for part in each["rounds"])
    if run.training is not None and run.outer_branch():
        proof = island_proof(run, _seq_len(run))
    else:
        proof = await _read_proof(store, run)
    return _about(run) | proof | {"ok": proof["ok"] and is_clean, "purged": purged}


async def _read_proof(store: ArtifactStore, run: CycleState) -> dict[str, Any]:
    """Prove what gangs have trained by their checkpoints, and what islands have by outer steps."""
    checkpoints = [fact for fact in run.canonical_branch() if isinstance(fact, CheckpointCommitted)]
    by_islands = rounds_of_islands(run)
    began = _Beginnings(run)
    committed = [_committed(began, fact) for fact in checkpoints]
    rounds = audit(committed, _trained(run), by_islands)
    read = [fact for fact in checkpoints if fact.round not in by_islands]
    contents = await asyncio.to_thread(_contents_of, store, read)
    proofs = [audit_round(run, number, _seq_len(run)) for number in by_islands]
    return _proof(contents, rounds, proofs)


def _about(run: CycleState) -> dict[str, Any]:
    return {
        "id": None if run.begun is None else run.begun.cycle,
        "name": run.label,
        "kind": run.kind,
    }


def _contents_of(store: ArtifactStore, checkpoints: Sequence[CheckpointCommitted]) -> list[_Read]:
    return [(fact, _contents(store, fact)) for fact in checkpoints]


def _proof(
    contents: Sequence[_Read], rounds: Sequence[RoundAudit], by_islands: Sequence[IslandRound]
) -> dict[str, Any]:
    audits = sorted([*rounds, *(each.audit for each in by_islands)], key=attrgetter("round"))
    differing = [_difference(fact, found) for fact, found in contents if found is not None]
    problems = [text for text in differing if text]
    return {
        "ok": not problems and not any(each.problems for each in audits),
        "rounds": [round_document(each) for each in audits],
        "checkpoints": len(contents),
        "checkpoints_read": len(differing),
        "problems": problems,
        **(outer_keys(by_islands) if by_islands else {}),
    }


def _committed(began: "_Beginnings", fact: CheckpointCommitted) -> Committed:
    cursor, began_tokens = began.of(fact.attempt, fact.round)
    return Committed(
        name=f"checkpoint {short(fact.artifact)}",
        round=fact.round,
        cursor=fact.cursor,
        tokens=fact.tokens,
        attempt=fact.attempt,
        began=cursor,
        began_tokens=began_tokens,
        on_trunk=fact.on_trunk,
    )


class _Beginnings:
    """Where the gangs of a run began; looked up once for all that one has made."""

    def __init__(self, run: CycleState) -> None:
        self._run = run
        self._known: dict[tuple[int, int], tuple[int | None, int | None]] = {}

    def of(self, attempt: int, round_number: int) -> tuple[int | None, int | None]:
        """Return the cursor at which a gang began in this round, and the tokens it began it with.

        None for a cursor that nobody knows, and for tokens where it began within the round.
        """
        key = (attempt, round_number)
        if key not in self._known:
            self._known[key] = self._look_up(attempt, round_number)
        return self._known[key]

    def _look_up(self, attempt: int, round_number: int) -> tuple[int | None, int | None]:
        opened = self._run.attempts_opened.get(attempt)
        if opened is None:
            return None, None
        if not opened.from_checkpoint:
            return 0, 0
        loaded = self._run.checkpoint(opened.from_checkpoint)
        if loaded is None:
            return None, None
        return (loaded.cursor, None) if loaded.round == round_number else (0, loaded.tokens)


def _trained(run: CycleState) -> dict[int, RoundTraining]:
    seq_len = _seq_len(run)
    return {
        number: RoundTraining(fact.sequences, seq_len) for number, fact in run.manifests.items()
    }


def _seq_len(run: CycleState) -> int:
    """Return the length of a sequence, which the model's preset or the people decide."""
    from jupiterd.cycle.domain.domain import parse_domain  # 8 MB, idle or not
    from jupiterd.cycle.training.plan import parse_model

    if run.training is not None:
        return int(run.training.settings["seq_len"] or 0)
    if run.started is None:
        return 0
    try:
        domain = parse_domain(run.started.domain_yaml, "domain.yaml")
        overrides = domain.training.overrides()
        return parse_model(run.started.model_yaml, overrides).seq_len
    except JupiterError:  # of another version: nothing adds up then, and that is said
        return 0


def _contents(store: ArtifactStore, fact: CheckpointCommitted) -> dict[str, Any] | None:
    """Return what a checkpoint says of itself; None where it isn't here."""
    if not store.holds(fact.artifact):
        return None
    try:
        path = store.path(ArtifactId(fact.artifact)) / STATE_FILE
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _difference(fact: CheckpointCommitted, found: dict[str, Any]) -> str:
    """Say where a checkpoint's own state isn't what was recorded of it; empty where it is."""
    for name in ("round", "step", "cursor", "tokens"):
        if found.get(name) != getattr(fact, name):
            return (
                f"checkpoint {short(fact.artifact)} was recorded with {name} "
                f"{getattr(fact, name)}, and says {found.get(name)} itself"
            )
    return ""
