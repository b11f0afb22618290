"""The task `gate`: put the scores of all pieces together and decide on the candidate.

Owns the verdict's file, which holds everything needed to decide again. The deciding is
`cycle.gate`'s.

inputs: scores.N · params: gate and holdout (as in the domain file), look, candidate, incumbent, ...
outputs: verdict (a folder with verdict.json and the merged scores.jsonl)
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from jupiterd.cycle.gate import GateSettings, Verdict, decide
from jupiterd.frames import Scalar, TaskFinished
from jupiterd.workers.evaluate.score_file import json_safe, read_scores, write_scores
from jupiterd.workers.link import Task

VERDICT_FILE = "verdict.json"
SCHEMA = "jupiter/verdict/v1"


def run(task: Task) -> TaskFinished:
    """Do the task that a daemon gave."""
    settings = GateSettings(
        alpha=float(task.params["gate"]["alpha"]),
        margin_bpb=float(task.params["gate"]["margin_bpb"]),
        stratum_veto_bpb=float(task.params["gate"]["stratum_veto_bpb"]),
        min_documents=int(task.params["holdout"]["min_documents"]),
        min_clusters=int(task.params["holdout"]["min_clusters"]),
    )
    scores = read_scores(task.inputs_named("scores"))
    verdict = decide(scores, settings, int(task.params["look"]))
    folder = task.output_dir / "verdict"
    write_scores(folder, scores)
    write_verdict(folder, verdict, settings, task.params)
    counts: dict[str, float] = {
        "documents": verdict.documents,
        "clusters": verdict.clusters,
        "bytes": verdict.bytes,
    }
    return TaskFinished({"verdict": "verdict"}, counts, summary_of(verdict))


def write_verdict(
    folder: Path, verdict: Verdict, settings: GateSettings, given: Mapping[str, Any]
) -> None:
    """Write verdict.json: the numbers, the settings, and what the task was `given` (ids, look)."""
    fields: dict[str, object] = {
        "schema": SCHEMA,
        "verdict": json_safe(asdict(verdict)),
        "settings": asdict(settings),
        "given": dict(given),
    }
    text = json.dumps(fields, indent=2, sort_keys=True, allow_nan=False)
    (folder / VERDICT_FILE).write_text(text + "\n", encoding="utf-8")


def summary_of(verdict: Verdict) -> dict[str, Scalar]:
    """Return what status, log and ledger show; what couldn't be had is infinite or None."""
    evidence = verdict.evidence
    return {
        "verdict": str(verdict.decision),
        "reason": verdict.reason,
        "val_bpb": verdict.val_bpb,
        "val_bpb_document_mean": verdict.val_bpb_document_mean,
        "incumbent_bpb": verdict.incumbent_bpb,
        "byte_bpb": verdict.byte_bpb,
        "unigram_bpb": verdict.unigram_bpb,
        "documents": verdict.documents,
        "clusters": verdict.clusters,
        "look": verdict.look,
        "alpha_spent": verdict.alpha_spent,
        "improvement_bpb": evidence.mean_improvement_bpb if evidence else None,
        "standard_error_bpb": evidence.standard_error_bpb if evidence else None,
        "lower_bound_bpb": evidence.lower_bound_bpb if evidence else None,
        "t": evidence.t if evidence else None,
        "p": evidence.p if evidence else None,
    }
