"""The task `hold_out`: part a round's clean real text into what is trained on and what is held out.

Owns looking at all of it at once: near-duplicates, the plan of the first round, and what becomes of
text that comes later. Doesn't know how much is held out, or which clusters (`holdout_plan`).

What was held out in the rounds before stays as it was: text that is equal or nearly so is dropped,
and so is further text of the same clusters. Only of a source that had no text before more is held
out, by the same plan. Two streams over the text; none of it is in memory, but for what was held out
before.

inputs: clean.N, dropped.N (from `clean`), holdout_before, plan_before (of the round before; absent
in the first) · params: holdout (see `HoldoutRules`), language, left_out (reason -> documents that
cleaning left out), needs_verdict, comparison (see `Comparison`)
outputs: train, holdout (sample folders, by id), plan (plan.json), dropped (some of what was dropped
here and in `clean`)
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from jupiterd.cycle.base.drop_reason import NOTHING_LEFT_HINT, DropReason
from jupiterd.cycle.data.lineage import Sample
from jupiterd.cycle.data.split import DEV, GATE, TRAIN, VAULT
from jupiterd.cycle.domain.filters import is_code
from jupiterd.cycle.holdout.clusters import DOCUMENT, level_name
from jupiterd.cycle.holdout.holdout_choice import plan_holdout
from jupiterd.cycle.holdout.holdout_plan import HoldoutPlan
from jupiterd.cycle.holdout.holdout_rules import HoldoutRules
from jupiterd.cycle.holdout.holdout_sides import COPY, HELD_OUT_BEFORE, LATE, sides_of
from jupiterd.cycle.holdout.paired_spread import FIRST, Comparison
from jupiterd.cycle.holdout.verdict_check import Found, check_verdict
from jupiterd.errors import EmptySourceError
from jupiterd.protocol.frames import TaskFinished
from jupiterd.workers.data.clean.drops import Drops, read_drops
from jupiterd.workers.data.dedup.collected_text import CollectedText
from jupiterd.workers.data.sorted_samples import SortedSampleWriter, merged
from jupiterd.workers.link import Task
from jupiterd.workers.progress import Progress, silent
from jupiterd.workers.samples.sample_file import SampleWriter, read_samples

PLAN_FILE = "plan.json"
OUTPUTS = ("train", "holdout", "plan", "dropped")


@dataclass(frozen=True)
class Before:
    """What the round before has held out; nothing in the first one."""

    plan: HoldoutPlan | None = None
    sources: frozenset[str] = frozenset()
    """Names of sources that had text by then."""
    reason: str = ""
    held_out: tuple[Sample, ...] = ()


@dataclass(frozen=True)
class HoldOutParams:
    """What decides the outputs, beside the text."""

    rules: HoldoutRules
    language: str
    left_out: Mapping[str, int] = field(default_factory=dict[str, int])
    needs_verdict: bool = True
    comparison: Comparison = FIRST
    """What the round's candidate will be compared with."""


def run(task: Task) -> TaskFinished:
    """Do the task that a daemon gave."""
    params = HoldOutParams(
        HoldoutRules(**task.params["holdout"]),
        str(task.params["language"]),
        {str(name): int(count) for name, count in task.params.get("left_out", {}).items()},
        bool(task.params.get("needs_verdict", True)),
        Comparison(**task.params.get("comparison", {})),
    )
    before = read_before(task.inputs.get("plan_before"), task.inputs.get("holdout_before"))
    batches = SourceBatches(task.inputs_named("clean"), task.inputs_named("dropped"))
    counts, summary = hold_out(batches, before, params, task.output_dir, task.progress)
    return TaskFinished({name: name for name in OUTPUTS}, counts, summary)


def read_before(plan: Path | None, holdout: Path | None) -> Before:
    """Return what the folders of the round before say."""
    if plan is None or holdout is None:
        return Before()
    saved: dict[str, Any] = json.loads((plan / PLAN_FILE).read_text(encoding="utf-8"))
    return Before(
        HoldoutPlan.from_plain(saved["plan"]),
        frozenset(map(str, saved["sources"])),
        str(saved["reason"]),
        tuple(read_samples(holdout)),
    )


@dataclass(frozen=True)
class SourceBatches:
    """The text of all sources, each clean by itself."""

    clean: Sequence[Path]
    dropped: Sequence[Path]


def hold_out(
    batches: SourceBatches,
    before: Before,
    params: HoldOutParams,
    output: Path,
    progress: Progress = silent,
) -> tuple[dict[str, float], dict[str, str | float]]:
    """Write the outputs below `output`; return counts, and what people are told of the plan.

    Raises:
        EmptySourceError: no text is left.
        TooLittleTextError: there can't be a verdict, and one is wanted.
    """
    text = CollectedText.of(
        merged(batches.clean),
        before.held_out,
        is_code=is_code(params.language),
        progress=progress,
    )
    if not text.documents:
        reasons = ", ".join(sorted(params.left_out)) or "there was none"
        raise EmptySourceError(
            f"the filters left no real text: {reasons}",
            NOTHING_LEFT_HINT,
        )
    plan, reason = before.plan, before.reason
    if plan is None:
        plan, reason = plan_holdout(text.documents, params.rules)
    writing = _Writing(plan, text, before, progress)
    writing.write(batches, output)
    found = Found.of(writing.held_out, len(text.documents), text.size_bytes, params.rules)
    if before.plan is None and params.needs_verdict:
        check_verdict(found, params.rules, params.left_out)
    _write_plan(output / "plan", plan, reason, before.sources.union(text.sources))
    summary = found.summary(params.rules, params.comparison) + _of_whom(plan, text, params.rules)
    counted = level_name(min(plan.depth, plan.counted_depth))
    return writing.counts(), {"holdout": summary, "clusters_are": counted}


def _of_whom(plan: HoldoutPlan, text: CollectedText, rules: HoldoutRules) -> str:
    """Say so where the gate counts by files, which of few folders may be alike."""
    folders = len({each.path[0] for each in text.documents})
    if min(plan.depth, plan.counted_depth) < DOCUMENT or folders >= rules.least_clusters:
        return ""
    where = "this folder or site" if folders == 1 else f"these {folders} folders or sites"
    return f"; the verdict speaks for {where} alone"


def _write_plan(folder: Path, plan: HoldoutPlan, reason: str, sources: frozenset[str]) -> None:
    fields = {"plan": plan.to_plain(), "reason": reason, "sources": sorted(sources)}
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(fields, indent=2, sort_keys=True) + "\n"
    (folder / PLAN_FILE).write_text(text, encoding="utf-8")


class _Writing:
    """Writes each document to its side."""

    def __init__(
        self, plan: HoldoutPlan, text: CollectedText, before: Before, progress: Progress
    ) -> None:
        self._plan = plan
        self._text = text
        self._before = before
        self._progress: Callable[[int, int, str], None] = progress
        late = {n for n, source in enumerate(text.sources) if source in before.sources}
        self._sides = sides_of(plan, text.documents, text.held_out_before, late)
        self._drops = Drops()
        self._counts: Counter[str] = Counter(
            dict.fromkeys(("train_documents", "train_bytes", "holdout_bytes", "late_documents"), 0)
        )
        self._clusters: set[str] = set()
        self.held_out: list[tuple[str, str, int]] = []
        """Part, cluster and bytes of each document that is held out."""

    def write(self, batches: SourceBatches, output: Path) -> None:
        """Write all outputs but the plan."""
        for folder in batches.dropped:
            self._drops.add_examples(read_drops(folder))
        known = {sample.id for sample in self._before.held_out}
        total = 2 * len(self._text.documents)
        with (
            SampleWriter(output / "train") as train,
            SortedSampleWriter(output / "holdout") as held,
        ):
            for sample in self._before.held_out:
                self._hold(held, sample)
            for number, sample in enumerate(merged(batches.clean)):
                if sample.id not in known:
                    self._place(number, sample, train, held)
                self._progress(total // 2 + number + 1, total, "samples")
        self._drops.write(output / "dropped")

    def _place(
        self, number: int, sample: Sample, train: SampleWriter, held: SortedSampleWriter
    ) -> None:
        document, side = self._text.documents[number], self._sides[number]
        if side == HELD_OUT_BEFORE:
            self._drops.add(sample, DropReason.IN_HOLDOUT)
        elif side == TRAIN:
            cluster = self._plan.cluster_of(document.path)
            train.add(replace(sample, cluster_id=cluster, split=TRAIN))
            self._counts.update(train_documents=1, train_bytes=document.size_bytes)
            self._clusters.add(cluster)
        elif side == LATE:
            self._counts["late_documents"] += 1
            self._drops.add(sample, DropReason.IN_HOLDOUT)
        elif side == COPY:
            self._drops.add(sample, DropReason.NEAR_DUPLICATE)
        else:
            counted = self._plan.counted_as(document.path)
            self._hold(held, replace(sample, cluster_id=counted, split=side))

    def _hold(self, held: SortedSampleWriter, sample: Sample) -> None:
        size = len(sample.text.encode())
        held.add(sample)
        self._counts.update({"holdout_bytes": size, f"{sample.split}_documents": 1})
        self.held_out.append((sample.split, sample.cluster_id, size))

    def counts(self) -> dict[str, float]:
        """Return how many documents are on each side, and what was dropped."""
        held = {cluster for _, cluster, _ in self.held_out}
        return {
            **{f"{part}_documents": 0 for part in (GATE, DEV, VAULT)},
            **self._counts,
            "holdout_documents": len(self.held_out),
            "holdout_clusters": len(held),
            "clusters": len(self._clusters | held),
            **self._drops.counts,
        }
