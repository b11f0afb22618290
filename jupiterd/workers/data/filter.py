"""The task `filter`: keep what is worth training on, once, and say why the rest was dropped.

Owns the order of the checks over a whole round: rules, held-out text, exact duplicates. The rules
are those of `cycle.filters`, the same for real and generated text. The held-out text is hashed here
and looked at no further.

inputs: train.N, holdout.N, synthetic.N (sample folders) · params: language, license_policy
outputs: kept (sample folder), dropped (sample folder with reasons.jsonl.zst beside it)
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from jupiterd.cycle.domain import LicensePolicy
from jupiterd.cycle.filters import DropReason, judge_sample
from jupiterd.cycle.lineage import Sample, text_hash
from jupiterd.errors import EmptySourceError
from jupiterd.frames import TaskFinished
from jupiterd.workers.data.progress import Progress, silent
from jupiterd.workers.data.sample_file import LineWriter, SampleWriter, read_all
from jupiterd.workers.link import Task

REASONS_FILE = "reasons.jsonl.zst"
"""Beside the dropped samples, in their order: {"id", "kind", "reason", "source_uri"} on each
line."""


def run(task: Task) -> TaskFinished:
    """Do the task that a daemon gave."""
    sieve = Sieve(
        str(task.params["language"]),
        LicensePolicy.model_validate(task.params.get("license_policy", {})),
        (text_hash(sample.text) for sample in read_all(task.inputs_named("holdout"))),
    )
    counts = filter_samples(
        sieve,
        task.inputs_named("train"),
        task.inputs_named("synthetic"),
        task.output_dir,
        task.progress,
    )
    return TaskFinished({"kept": "kept", "dropped": "dropped"}, counts)


class Sieve:
    """Decides on one sample after the other; remembers what it kept."""

    def __init__(self, language: str, policy: LicensePolicy, holdout: Iterable[str]) -> None:
        self._language = language
        self._policy = policy
        self._holdout = frozenset(holdout)
        self._kept: set[str] = set()

    def judge(self, sample: Sample) -> DropReason | None:
        """Return why the sample is dropped; None keeps it, and no later one with its text."""
        digest = text_hash(sample.text)
        reason = (
            self._known(digest)
            or (None if self._policy.permits(sample.license) else DropReason.LICENSE)
            or judge_sample(sample, self._language)
        )
        if reason is None:
            self._kept.add(digest)
        return reason

    def _known(self, digest: str) -> DropReason | None:
        if digest in self._holdout:
            return DropReason.IN_HOLDOUT
        return DropReason.DUPLICATE if digest in self._kept else None


def filter_samples(
    sieve: Sieve,
    train: Sequence[Path],
    synthetic: Sequence[Path],
    output_dir: Path,
    progress: Progress = silent,
) -> dict[str, float]:
    """Write `kept` and `dropped` below `output_dir`; return counts, `dropped.<reason>` among them.

    Real samples go first, so that of two equal texts the real one is kept.

    Raises:
        EmptySourceError: nothing real is left.
    """
    counts: Counter[str] = Counter(
        dict.fromkeys(("kept", "dropped", "kept_real", "kept_synthetic"), 0)
    )
    dropped_dir = output_dir / "dropped"
    with (
        SampleWriter(output_dir / "kept") as kept,
        SampleWriter(dropped_dir) as dropped,
        LineWriter(dropped_dir / REASONS_FILE) as reasons,
    ):
        for number, sample in enumerate(_in_order(train, synthetic), 1):
            reason = sieve.judge(sample)
            if reason is None:
                kept.add(sample)
                counts.update(("kept", f"kept_{sample.kind}"))
            else:
                dropped.add(sample)
                reasons.write(_reason_line(sample, reason))
                counts.update(("dropped", f"dropped.{reason}"))
            progress(number, 0, "samples")
    if not counts["kept_real"]:
        raise EmptySourceError(
            f"the filters left no real text of {counts['dropped']} documents",
            "look into the dropped samples' reasons, and at `language` in the domain file",
        )
    return dict(counts)


def _in_order(train: Sequence[Path], synthetic: Sequence[Path]) -> Iterator[Sample]:
    return chain(read_all(train), read_all(synthetic))


def _reason_line(sample: Sample, reason: DropReason) -> str:
    fields = {
        "id": sample.id,
        "kind": sample.kind,
        "reason": str(reason),
        "source_uri": sample.source_uri,
    }
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
