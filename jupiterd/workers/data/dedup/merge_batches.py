"""The task `unite`: of all clean batches of a round keep each text once, and none of the holdout.

Owns the comparisons between texts: equal ones, nearly equal ones, those that share too much with
held-out text, or give a question of the domain's own away. The held-out text is compared with and
looked at no further. Two streams over the batches, three where quality is judged (`quality_cut`);
no text is held in memory.

Which one of a group is kept depends on nothing but the group: real before synthetic, the reference
of quality before others, then the smallest id. So the same samples give the same bytes, however the
work was cut and ordered.

inputs: clean.N, dropped.N (from `clean`), holdout.N (sample folders), questions (the domain's own;
absent: there are none) · params: language, purged, quality (as in the domain file; absent: it isn't
judged)
outputs: kept (sample folder, by id), dropped (some of what was dropped here and in `clean`, but
nothing that was purged)
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from jupiterd.cycle.base.drop_reason import NOTHING_LEFT_HINT, DropReason
from jupiterd.cycle.base.purge_counts import LEFT_OUT_COUNT
from jupiterd.cycle.data.lineage import Sample
from jupiterd.cycle.data.purge import Purge
from jupiterd.cycle.domain.domain import Quality
from jupiterd.cycle.domain.filters import is_code
from jupiterd.cycle.questions.contamination import QuestionIndex
from jupiterd.cycle.questions.question_file import (
    QUESTIONS,
    QUESTIONS_FILE,
    DomainQuestion,
    read_questions,
)
from jupiterd.cycle.text_rules.decontamination import HeldOutIndex
from jupiterd.errors import EmptySourceError
from jupiterd.protocol.frames import TaskFinished
from jupiterd.workers.data.clean.drops import Drops, read_drops
from jupiterd.workers.data.clean.quality_cut import QualityCut
from jupiterd.workers.data.dedup.near_duplicates import NearDuplicates
from jupiterd.workers.data.sorted_samples import merged
from jupiterd.workers.link import Task
from jupiterd.workers.progress import Progress, silent
from jupiterd.workers.samples.sample_file import SampleWriter, read_all


@dataclass(frozen=True)
class RoundBatches:
    """What a round has to choose from."""

    clean: Sequence[Path]
    dropped: Sequence[Path]
    holdout: Sequence[Path]
    purge: Purge = field(default_factory=Purge)
    questions: Sequence[DomainQuestion] = ()


def run(task: Task) -> TaskFinished:
    """Do the task that a daemon gave."""
    batches = RoundBatches(
        task.inputs_named("clean"),
        task.inputs_named("dropped"),
        task.inputs_named("holdout"),
        Purge(map(str, task.params.get("purged", ()))),
        _questions(task.inputs.get(QUESTIONS)),
    )
    wanted = task.params.get("quality")
    quality = None if wanted is None else Quality.model_validate(wanted)
    language = str(task.params["language"])
    counts = unite(batches, task.output_dir, language, task.progress, quality)
    return TaskFinished({"kept": "kept", "dropped": "dropped"}, counts)


def _questions(folder: Path | None) -> list[DomainQuestion]:
    """Return the domain's own questions; none where it has none."""
    if folder is None:
        return []
    text = (folder / QUESTIONS_FILE).read_text(encoding="utf-8")
    return read_questions(text, QUESTIONS_FILE)


def unite(
    batches: RoundBatches,
    output_dir: Path,
    language: str,
    progress: Progress = silent,
    quality: Quality | None = None,
) -> dict[str, float]:
    """Write `retained` and `dropped` below `output_dir`; return counts.

    Also how many were dropped for each reason, and left out of each purged source.

    Raises:
        EmptySourceError: nothing real is left.
    """
    drops = Drops()
    left_out = _purge(batches, drops)
    for folder in batches.dropped:
        drops.add_examples(each for each in read_drops(folder) if not batches.purge.hit(each[0]))
    cut = QualityCut(quality, language)
    choice = _choose(batches, language, cut, progress)
    _judge(batches, choice, cut, progress)
    retained: Counter[str] = Counter({"kept": 0, "kept_real": 0, "kept_synthetic": 0})
    with SampleWriter(output_dir / "kept") as writer:
        for number, twins in enumerate(_by_text(batches)):
            sample = cut.marked(number, twins[0])
            reason = choice.reason(number) or cut.reason(number)
            for twin in twins[1:]:
                drops.add(twin, DropReason.DUPLICATE)
            if reason is None:
                writer.add(choice.marked(number, sample))
                retained.update(("kept", f"kept_{sample.kind}"))
            else:
                drops.add(sample, reason)
            progress(choice.texts + number + 1, 2 * choice.texts, "samples")
    if not retained["kept_real"]:
        raise EmptySourceError(
            f"the filters left no real text: {drops.reasons() or 'there was none'}",
            NOTHING_LEFT_HINT,
        )
    drops.write(output_dir / "dropped")
    return {**retained, **drops.counts, **left_out, **cut.counts()}


def _purge(batches: RoundBatches, drops: Drops) -> dict[str, float]:
    """Find out what is purged, before it could hide another source's copy; count it by source."""
    purge = batches.purge
    if not purge.sources:
        return {}
    purge.learn(read_all(batches.clean))
    hits: Counter[str] = Counter()
    for sample in read_all(batches.clean):
        if source := purge.hit(sample):
            hits[source] += 1
            drops.count(DropReason.PURGED)  # none is kept: its text would be written anew
    return {f"{LEFT_OUT_COUNT}{source}": hits[source] for source in purge.sources}


def _by_text(batches: RoundBatches) -> Iterator[list[Sample]]:
    """Yield the samples of each text, the one that is kept before its equals."""
    left = batches.purge.left(merged(batches.clean))
    for _, twins in groupby(left, key=attrgetter("id")):
        found = list(twins)
        yield sorted(found, key=_rank) if len(found) > 1 else found


def _rank(sample: Sample) -> tuple[bool, int, str]:
    return sample.kind != "real", sample.depth, sample.to_json()


class _Choice:
    """Which of the texts, numbered by id, are kept."""

    def __init__(self, roots: Sequence[int], ranks: bytearray, is_held_out: bytearray) -> None:
        self.texts = len(roots)
        self._roots = roots
        self._is_held_out = is_held_out
        self._size = Counter(roots)
        self._first: dict[int, int] = {}
        for number in sorted(range(self.texts), key=ranks.__getitem__):
            self._first.setdefault(roots[number], number)

    def reason(self, number: int) -> DropReason | None:
        if self._is_held_out[number]:
            return DropReason.IN_HOLDOUT
        is_first = self._first[self._roots[number]] == number
        return None if is_first else DropReason.NEAR_DUPLICATE

    def marked(self, number: int, sample: Sample) -> Sample:
        """Return the kept sample; the first of several near-duplicates says so."""
        is_alone = self._size[self._roots[number]] == 1
        return sample if is_alone else replace(sample, duplicate_cluster=sample.id)


_REFERENCE, _REAL, _SYNTHETIC = range(3)
"""Which of nearly equal texts is kept rather."""


def _choose(batches: RoundBatches, language: str, cut: QualityCut, progress: Progress) -> _Choice:
    held_out_ids = {sample.id for sample in read_all(batches.holdout)}
    holdout = HeldOutIndex(sample.text for sample in read_all(batches.holdout))
    asked = QuestionIndex(batches.questions)
    near = NearDuplicates(is_code=is_code(language))
    ranks, is_held_out = bytearray(), bytearray()
    for number, twins in enumerate(_by_text(batches), 1):
        sample = twins[0]
        leaks = (
            sample.id in held_out_ids
            or holdout.contaminates(sample.text)
            or asked.contaminates(sample.text)
        )
        # What leaks is near to nobody: a good text mustn't be dropped in favour of it.
        near.add("" if leaks else sample.text)
        if not leaks:
            cut.count(twins)
        is_other = _REAL if sample.kind == "real" else _SYNTHETIC
        ranks.append(_REFERENCE if cut.is_reference(twins) else is_other)
        is_held_out.append(leaks)
        progress(number, 0, "samples")
    return _Choice(near.groups(), ranks, is_held_out)


def _judge(batches: RoundBatches, choice: _Choice, cut: QualityCut, progress: Progress) -> None:
    """Score the texts that are kept so far, where the domain asks for that."""
    if not cut.begin_scoring():
        return
    for number, twins in enumerate(_by_text(batches)):
        cut.score(twins, is_retained=choice.reason(number) is None)
        progress(choice.texts, 2 * choice.texts, "samples")
    cut.end_scoring()
