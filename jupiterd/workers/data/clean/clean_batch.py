"""The task `clean`: keep of one batch of samples what is worth training on by itself.

Owns the order of the checks on one text: licence, rules, language. Real and generated batches meet
the same ones. Doesn't know other batches: `unite` compares texts with each other and the holdout.

inputs: samples, samples.N (sample folders) · params: language, license_policy, rules_off (names),
piece and pieces (where only every n-th sample is this item's)
outputs: clean (sample folder, by id), dropped (some of what was dropped, see `drops`)
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Self

from jupiterd.cycle.base.drop_reason import DropReason
from jupiterd.cycle.base.licenses import LicensePolicy
from jupiterd.cycle.data.lineage import Sample
from jupiterd.cycle.domain.filters import is_code, judge_sample, passed
from jupiterd.cycle.text_rules.judgement import Judgement
from jupiterd.protocol.frames import TaskFinished
from jupiterd.workers.data.clean.drops import Drops
from jupiterd.workers.data.clean.language_id import MIN_SCORE, language_score
from jupiterd.workers.data.sorted_samples import SortedSampleWriter
from jupiterd.workers.link import Task
from jupiterd.workers.progress import Progress, silent
from jupiterd.workers.samples.sample_file import read_all


@dataclass(frozen=True)
class TextRules:
    """What a domain asks of each text."""

    language: str
    """Natural, such as `en`, or `code:` and a programming language."""
    policy: LicensePolicy = field(default_factory=LicensePolicy)
    off: frozenset[DropReason] = frozenset()
    """Rules that the domain has put out of force."""

    @classmethod
    def of_params(cls, params: Mapping[str, Any]) -> Self:
        """Return what an item's parameters say."""
        return cls(
            str(params["language"]),
            LicensePolicy.model_validate(params.get("license_policy", {})),
            frozenset(map(DropReason, params.get("rules_off", ()))),
        )


def run(task: Task) -> TaskFinished:
    """Do the task that a daemon gave."""
    rules = TextRules.of_params(task.params)
    samples = read_all(task.inputs_named("samples"))
    piece, pieces = int(task.params.get("piece", 0)), int(task.params.get("pieces", 1))
    own = islice(samples, piece, None, pieces)
    counts = clean_samples(own, task.output_dir, rules, task.progress)
    return TaskFinished({"clean": "clean", "dropped": "dropped"}, counts)


def clean(
    folders: Sequence[Path], output_dir: Path, rules: TextRules, progress: Progress = silent
) -> dict[str, float]:
    """Write `clean` and `dropped` below `output_dir`; return counts, `dropped.<reason>` too."""
    return clean_samples(read_all(folders), output_dir, rules, progress)


def clean_samples(
    samples: Iterable[Sample], output_dir: Path, rules: TextRules, progress: Progress = silent
) -> dict[str, float]:
    """Do the same with samples from wherever they are."""
    drops = Drops()
    with SortedSampleWriter(output_dir / "clean") as writer:
        for number, sample in enumerate(samples, 1):
            judgement = judge(sample, rules)
            if judgement.reason is None:
                writer.add(passed(sample, judgement.scores))
            else:
                drops.add(sample, judgement.reason, judgement)
            progress(number, 0, "samples")
    drops.write(output_dir / "dropped")
    return dict(drops.counts)


def judge(sample: Sample, rules: TextRules) -> Judgement:
    """Return why a sample is dropped, or what was measured of it."""
    if not rules.policy.permits(sample.license, sample.source_uri):
        return Judgement(DropReason.LICENSE)
    found = judge_sample(sample, rules.language, rules.off)
    if found.reason is not None or is_code(rules.language) or not found.prose:
        return found
    score = language_score(found.prose, rules.language)
    if score < MIN_SCORE and DropReason.OTHER_LANGUAGE not in rules.off:
        return Judgement(DropReason.OTHER_LANGUAGE, {}, "language", score, MIN_SCORE)
    return replace(found, scores={**found.scores, "language": score})
