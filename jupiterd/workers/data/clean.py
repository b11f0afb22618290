"""The task `clean`: keep of one batch of samples what is worth training on by itself.

Owns the order of the checks on one text: licence, rules, language. Real and generated batches meet
the same ones. Doesn't know other batches: `unite` compares texts with each other and the holdout.

inputs: samples, samples.N (sample folders) · params: language, license_policy
outputs: clean (sample folder, by id), dropped (some of what was dropped, see `drops`)
"""

from collections.abc import Sequence
from pathlib import Path

from jupiterd.cycle.drop_reason import DropReason
from jupiterd.cycle.filters import Judgement, is_code, judge_sample, passed
from jupiterd.cycle.licenses import LicensePolicy
from jupiterd.cycle.lineage import Sample
from jupiterd.frames import TaskFinished
from jupiterd.workers.data.drops import Drops
from jupiterd.workers.data.language_id import MIN_SCORE, language_score
from jupiterd.workers.data.progress import Progress, silent
from jupiterd.workers.data.sample_file import read_all
from jupiterd.workers.data.sorted_samples import SortedSampleWriter
from jupiterd.workers.link import Task


def run(task: Task) -> TaskFinished:
    """Do the task that a daemon gave."""
    counts = clean(
        task.inputs_named("samples"),
        task.output_dir,
        str(task.params["language"]),
        LicensePolicy.model_validate(task.params.get("license_policy", {})),
        task.progress,
    )
    return TaskFinished({"clean": "clean", "dropped": "dropped"}, counts)


def clean(
    folders: Sequence[Path],
    output_dir: Path,
    language: str,
    policy: LicensePolicy,
    progress: Progress = silent,
) -> dict[str, float]:
    """Write `clean` and `dropped` below `output_dir`; return counts, `dropped.<reason>` too."""
    drops = Drops()
    with SortedSampleWriter(output_dir / "clean") as writer:
        for number, sample in enumerate(read_all(folders), 1):
            judgement = judge(sample, language, policy)
            if judgement.reason is None:
                writer.add(passed(sample, judgement.scores))
            else:
                drops.add(sample, judgement.reason)
            progress(number, 0, "samples")
    drops.write(output_dir / "dropped")
    return dict(drops.counts)


def judge(sample: Sample, language: str, policy: LicensePolicy) -> Judgement:
    """Return why a sample is dropped, or what was measured of it."""
    if not policy.permits(sample.license, sample.source_uri):
        return Judgement(DropReason.LICENSE)
    found = judge_sample(sample, language)
    if found.reason is not None or is_code(language):
        return found
    score = language_score(sample.text, language)
    if score < MIN_SCORE:
        return Judgement(DropReason.OTHER_LANGUAGE)
    return Judgement(None, {**found.scores, "language": score})
