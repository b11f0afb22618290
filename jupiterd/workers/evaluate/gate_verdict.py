"""The task `gate`: put the scores of all pieces together and decide on the candidate.

Owns the verdict's folder, which holds everything needed to decide again. The deciding is
`cycle.gate`'s.

inputs: scores.N, vault.N (where the vault is shown), proxies.N (small students, where some were
trained), judge (what a judge said, where one was asked)
params: gate and holdout (as in the domain file), look, candidate, incumbent, teaching, ...
outputs: verdict (a folder with verdict.json and all that it was decided on)
summary: what status shows of it, and when it was judged, which is in no file: the same scores must
come to the same bytes
"""

import datetime as dt
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jupiterd.cycle.gate.decision import Question
from jupiterd.cycle.gate.record import (
    PAIRS_FILE,
    PROXY_FILE,
    VERDICT_FILE,
    Material,
    decide_on,
    pair_lines,
    proxy_lines,
    settings_of,
)
from jupiterd.cycle.gate.verdict import Verdict
from jupiterd.cycle.phases.comparison import BESIDE_STUDENT
from jupiterd.cycle.rounds.round_table import JUDGED_AT
from jupiterd.protocol.frames import Scalar, TaskFinished
from jupiterd.workers.evaluate.score_file import (
    read_folders,
    write_sanity,
    write_scores,
    write_text,
)
from jupiterd.workers.link import Task


def run(task: Task) -> TaskFinished:
    """Do the task that a daemon gave."""
    names = ("scores", "vault", "proxies", "judge")
    pieces = [folder for name in names for folder in task.inputs_named(name)]
    verdict = write_verdict(task.output_dir / "verdict", read_folders(pieces), task.params)
    counts: dict[str, float] = {
        "documents": verdict.documents,
        "clusters": verdict.clusters,
        "bytes": verdict.bytes,
    }
    judged_at = dt.datetime.now(tz=dt.UTC).isoformat(timespec="seconds")  # noqa: TID251
    margin = {"margin_bpb": settings_of(task.params).margin_bpb}
    comparison = {BESIDE_STUDENT: bool(task.params.get("incumbent"))}
    summary = {**summary_of(verdict), **margin, **comparison, JUDGED_AT: judged_at}
    return TaskFinished({"verdict": "verdict"}, counts, summary)


def write_verdict(folder: Path, material: Material, given: Mapping[str, Any]) -> Verdict:
    """Decide; write verdict.json and what was decided on."""
    verdict, text = decide_on(material, given)
    write_scores(folder, material.scores, material.findings.cloze)
    if (sanity := material.findings.sanity) is not None:
        write_sanity(folder, sanity)
    if runs := material.findings.taught.runs:
        write_text(folder / PROXY_FILE, proxy_lines(runs))
    if judged := material.findings.judged:
        write_text(folder / PAIRS_FILE, pair_lines(judged.pairs))
    write_text(folder / VERDICT_FILE, text)
    return verdict


def summary_of(verdict: Verdict) -> dict[str, Scalar]:
    """Return what status, log and ledger show; what couldn't be had is infinite or None."""
    evidence, vault, dev = verdict.evidence, verdict.vault, verdict.dev
    return {
        "verdict": str(verdict.decision),
        "reason": verdict.reason,
        "val_bpb": verdict.val_bpb,
        "val_bpb_document_mean": verdict.val_bpb_document_mean,
        "incumbent_bpb": verdict.incumbent_bpb,
        "generator_bpb": verdict.generator_bpb,
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
        **_of_base(verdict),
        "dev_bpb": dev.candidate_bpb if dev else None,
        "dev_incumbent_bpb": dev.incumbent_bpb if dev else None,
        "teaches": verdict.passed(Question.TEACHES),
        "teaching_gain_bpb": verdict.teaching.gain_bpb if verdict.teaching else None,
        "control_gain_bpb": verdict.control.gain_bpb if verdict.control else None,
        "better": verdict.passed(Question.BETTER),
        "tied": verdict.is_tied,
        "vault_gap_bpb": vault.gap_bpb if vault else None,
        "vault_alarm": vault.is_alarm if vault else None,
    }


def _of_base(verdict: Verdict) -> dict[str, Scalar]:
    """Return what is shown beside the model that was brought; nothing where none was."""
    if verdict.base_bpb is None:
        return {}
    found = verdict.forgetting
    return {"base_bpb": verdict.base_bpb, "forgetting": None if found is None else found.growth}
