"""The task `collect`: read one data source.

Owns the licence policy, that no text is stored with its secrets, and what is kept for the next
round. Doesn't know kinds of sources (`collectors`), judge quality (`clean` does), nor know what is
held out (`hold_out` does). Rounds of cycles that began before that are split here, as each document
is read: only they name a holdout.

params: source (as in the domain file), part and parts (its number, and how many there are, where it
is read in parts), language, license_policy, fetched_at, holdout (see above),
purged (a source that is named there isn't read: all outputs are empty; nor is what lies at an
address that is)
inputs: previous_documents, previous_state (of the round before; absent in the first)
outputs: documents (a sample folder), state (for the next round), skipped (what was left out); where
a holdout is named, train and holdout in place of documents
"""

import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import TypeAdapter

from jupiterd.cycle.base.licenses import UNKNOWN_LICENSE, LicensePolicy
from jupiterd.cycle.data.lineage import Sample
from jupiterd.cycle.data.reason_words import reason_words
from jupiterd.cycle.data.row_advice import SAY_FIELD
from jupiterd.cycle.data.split import TRAIN, part_of
from jupiterd.cycle.domain.data_sources import DataSource
from jupiterd.cycle.domain.domain import Holdout
from jupiterd.errors import (
    EmptySourceError,
    InvalidDomainError,
    SourceUnreachableError,
    WorkStoppedError,
)
from jupiterd.processor_limits import usable_cores
from jupiterd.protocol.frames import TaskFinished
from jupiterd.workers.data.collect.cleaned_document import Cleaning, with_kind, within_limits
from jupiterd.workers.data.collect.collected_sample import collected_sample
from jupiterd.workers.data.collect.extraction_cache import ExtractionCache
from jupiterd.workers.data.collect.previous_round import PreviousRound, write_state
from jupiterd.workers.data.collect.purged_sources import PurgedAddresses, not_collected
from jupiterd.workers.data.collect.work_queue import WorkQueue, own_scratch
from jupiterd.workers.data.collectors.collector import (
    UNREACHABLE_HINT,
    CollectedDocument,
    Collector,
    Unchanged,
    Visit,
)
from jupiterd.workers.data.collectors.kinds import BY_FILES, open_collector
from jupiterd.workers.data.extract.extraction import Extractor
from jupiterd.workers.data.extract.extractor_pool import ExtractorPool
from jupiterd.workers.data.skips import SkipLog, SkipReason, UnreadableError
from jupiterd.workers.link import Task
from jupiterd.workers.memory_room import halved
from jupiterd.workers.progress import Progress, silent
from jupiterd.workers.samples.sample_file import SampleWriter

UNSPLIT, SPLIT = ("documents",), ("train", "holdout")
"""The outputs that hold samples."""


@dataclass(frozen=True)
class CollectParams:
    """What decides the outputs, beside the source itself."""

    fraction: float
    """Share of the clusters that is held out here; 0: nothing is, all is written as documents."""
    salt: str
    language: str
    fetched_at: str
    """The cycle's start, not the time of reading: doing the work again gives the same bytes. What
    comes over the network says itself when it came."""
    source: str = ""
    """The source's name in the domain file."""
    policy: LicensePolicy = field(default_factory=LicensePolicy)
    dev: float = 0.0
    """Share of the holdout for the validation loss."""
    vault: float = 0.0
    """Share of the holdout that is kept for later."""
    purged: tuple[str, ...] = ()
    """Addresses at which nothing is read any more; names of sources don't matter here."""
    may_be_empty: bool = False
    """Whether it is no error that there is no text: a data set may have fewer files than parts."""
    programs: int = 0
    """How many extract at a time; 0: one for each core. It doesn't decide the outputs."""


@dataclass(frozen=True)
class Places:
    """Where a collection reads and writes."""

    output: Path
    scratch: Path
    previous_samples: tuple[Path, ...] = ()
    previous_state: Path | None = None


def run(task: Task) -> TaskFinished:
    """Do the task that a daemon gave."""
    source: DataSource = TypeAdapter[DataSource](DataSource).validate_python(task.params["source"])
    parts = int(task.params.get("parts", 1))
    part = (int(task.params["part"]), parts) if parts > 1 else None
    holdout_params = task.params.get("holdout")
    of_text = UNSPLIT if holdout_params is None else SPLIT
    if source.name in task.params.get("purged", ()):
        return not_collected(source.name, task.output_dir, of_text)
    policy = LicensePolicy.model_validate(task.params.get("license_policy", {}))
    if not source.may_be_permitted(policy):
        raise InvalidDomainError(
            f"the domain's license_policy doesn't permit {source.license}",
            "change license_policy in the domain file",
        )
    holdout = (
        Holdout(salt="none")
        if holdout_params is None
        else Holdout.model_validate(holdout_params).at_collection()
    )
    params = CollectParams(
        holdout.fraction or 0.0,
        holdout.salt,
        str(task.params["language"]),
        str(task.params["fetched_at"]),
        source.name,
        policy,
        holdout.dev or 0.0,
        holdout.vault or 0.0,
        tuple(map(str, task.params.get("purged", ()))),
        part is not None and part[0] > 0 and source.kind in BY_FILES,
        halved(usable_cores(), task.params, "document"),
    )

    def pause(seconds: float) -> None:
        task.wait_for_stop(seconds)
        if task.stop_requested:
            raise WorkStoppedError("the collecting worker was told to stop")

    with own_scratch(task.scratch_dir, task.output_dir) as scratch:
        before = [task.inputs.get(f"previous_{name}") for name in (*UNSPLIT, *SPLIT)]
        samples = tuple(path for path in before if path is not None)
        places = Places(task.output_dir, scratch, samples, task.inputs.get("previous_state"))
        counts = collect(open_collector(source, part), places, params, task.progress, pause)
    return TaskFinished({name: name for name in (*of_text, "state", "skipped")}, counts)


def collect(
    collector: Collector,
    places: Places,
    params: CollectParams,
    progress: Progress = silent,
    pause: Callable[[float], None] = time.sleep,  # noqa: TID251 - where nobody can ask for an end
) -> dict[str, float]:
    """Write what is found below `places.output`; return the counts.

    Raises:
        EmptySourceError: no document of the source could be read.
        SourceUnreachableError: the same, because there is no way to it.
    """
    try:
        return _collected(collector, places, params, progress, pause)
    except (EmptySourceError, SourceUnreachableError):
        _forget(places.scratch)
        raise


def _collected(
    collector: Collector,
    places: Places,
    params: CollectParams,
    progress: Progress,
    pause: Callable[[float], None],
) -> dict[str, float]:
    with (
        WorkQueue(places.scratch / "extracted.db") as queue,
        Extractor(language=params.language) as extractor,
        ExtractorPool(params.language, cores=params.programs) as pool,
        closing(
            PreviousRound(
                places.scratch / "previous.db",
                places.previous_samples,
                places.previous_state,
                collector.collector,
            )
        ) as previous,
        SkipLog(places.output / "skipped") as skips,
    ):
        extraction = ExtractionCache(extractor, queue, pool)
        purged = PurgedAddresses(params.purged)
        visit = Visit(
            places.scratch, previous, extraction, skips, progress, pause, _now, purged,
            params.language,
        )  # fmt: skip
        removed: Counter[str] = Counter()
        samples = _samples(collector, visit, params, removed)
        counts = _write(samples, places.output, params) | removed
        write_state(places.output / "state", collector.state())
    is_empty = not counts["documents"] + counts.get("holdout_documents", 0)
    if is_empty and not (purged.counts() or params.may_be_empty):
        raise nothing_found(collector.name, skips)
    return {**counts, **skips.totals(), **purged.counts()}


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _samples(
    collector: Collector, visit: Visit, params: CollectParams, removed: Counter[str]
) -> Iterator[Sample]:
    """Yield a sample for each document that the policy permits; count what its text loses."""
    clean = within_limits(visit.extraction)
    for found in collector.documents(visit):
        if visit.purged.leaves_out(found.uri, visit.skips):
            continue
        try:
            if isinstance(found, Unchanged):
                previous_sample = visit.previous.sample(found.uri)
                if previous_sample is not None:
                    yield with_kind(previous_sample, previous_sample.source_uri, clean)
            elif not params.policy.permits(found.license, found.uri):
                visit.skips.add(found.uri, SkipReason.LICENSE)
            elif not _can_be_written(found):
                visit.skips.add(found.uri, SkipReason.NOT_TEXT)
            else:
                yield _sample(found, collector.collector, params, removed, clean)
        except UnreadableError as error:
            detail = error.detail or "couldn't be cleaned"
            visit.skips.add(found.uri, error.reason, detail=f"its markup {detail}")


def _can_be_written(found: CollectedDocument) -> bool:
    """Say whether it is Unicode: JSON can spell halves of characters, which no file can hold."""
    try:
        f"{found.text}{found.uri}{found.cluster_id}{found.revision}".encode()
    except UnicodeEncodeError:
        return False
    return bool(found.text.strip()) and "\0" not in found.text


def _sample(
    found: CollectedDocument,
    collector: str,
    params: CollectParams,
    removed: Counter[str],
    clean: Cleaning,
) -> Sample:
    """Make a sample of a text: all that outlives this task passes here, without its secrets."""
    sample, secrets = collected_sample(found, collector, params.language, params.source, clean)
    removed.update({f"removed.{kind}": number for kind, number in secrets.items()})
    return replace(sample, fetched_at=sample.fetched_at or params.fetched_at)


def _write(samples: Iterator[Sample], output: Path, params: CollectParams) -> dict[str, float]:
    """Write each sample, on its side where they are split here; return the counts."""
    if params.fraction:
        return _split(samples, output, params)
    counts: Counter[str] = Counter({"documents": 0, "bytes": 0})
    with SampleWriter(output / UNSPLIT[0]) as documents:
        for sample in samples:
            documents.add(sample)
            counts.update({"documents": 1, "bytes": len(sample.text.encode())})
            counts.update(_of_license(sample, params.policy))
    return dict(counts)


def _split(samples: Iterator[Sample], output: Path, params: CollectParams) -> dict[str, float]:
    counts: Counter[str] = Counter(
        dict.fromkeys(("documents", "bytes", "holdout_documents", "holdout_bytes"), 0)
    )
    clusters: dict[str, set[str]] = {"": set(), "holdout_": set()}
    with SampleWriter(output / "train") as train, SampleWriter(output / "holdout") as holdout:
        for sample in samples:
            split = part_of(
                sample.cluster_id, params.salt, params.fraction, params.dev, params.vault
            )
            held_out = split != TRAIN
            (holdout if held_out else train).add(replace(sample, split=split))
            part = "holdout_" if held_out else ""
            counts[f"{part}documents"] += 1
            counts[f"{part}bytes"] += len(sample.text.encode())
            clusters[part].add(sample.cluster_id)
            counts.update(_of_license(sample, params.policy))
    return {**counts, "clusters": len(clusters[""]), "holdout_clusters": len(clusters["holdout_"])}


def _of_license(sample: Sample, policy: LicensePolicy) -> dict[str, int]:
    """Return a count where nobody knows the licence, and people want to be told."""
    is_warned = sample.license == UNKNOWN_LICENSE and policy.of_unknown(sample.source_uri) == "warn"
    return {"unknown_license": 1} if is_warned else {}


SLOW_HINT = "try again once the machine has less to do, or leave these files out with `glob`"


def nothing_found(name: str, skips: SkipLog) -> EmptySourceError | SourceUnreachableError:
    """Return what is wrong with a source of which nothing could be read."""
    if skips.counts[SkipReason.UNREACHABLE]:
        return SourceUnreachableError(f"{name} can't be reached", UNREACHABLE_HINT)
    if not skips.counts:
        return EmptySourceError(f"{name} has no file, page or row that the source asks for")
    reasons = ", ".join(
        f"{reason_words(reason)} {number}"
        + (f" ({skips.details[reason]})" if reason in skips.details else "")
        for reason, number in skips.counts.most_common(4)
    )
    if set(skips.counts) == {SkipReason.TIMED_OUT}:
        return EmptySourceError(f"nothing of {name} could be read in time: {reasons}", SLOW_HINT)
    hint = SAY_FIELD if skips.counts[SkipReason.NO_FIELD] else ""
    return EmptySourceError(f"{name} has no text that can be used: {reasons}", hint)


def _forget(scratch: Path) -> None:
    """Let the next try begin anew: what couldn't be had now may be there then."""
    for path in scratch.iterdir():
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        elif path.name != "lock":
            path.unlink(missing_ok=True)
