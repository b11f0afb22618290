"""The task `collect`: read one data source and split it at once into training and held-out text.

Owns reading, decoding and the split, which happens as each document is read, before anything else
sees its text. Doesn't judge quality (`filter` does), nor know what either half is used for.

params: source and holdout (as in the domain file), language, license_policy, fetched_at
outputs: train, holdout (sample folders)
"""

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter

from jupiterd.cycle.data_sources import DataSource
from jupiterd.cycle.domain import Holdout
from jupiterd.cycle.licenses import LicensePolicy
from jupiterd.cycle.lineage import Sample, text_hash
from jupiterd.cycle.secrets import cleaned
from jupiterd.cycle.split import TRAIN, part_of
from jupiterd.errors import EmptySourceError, InvalidDomainError
from jupiterd.frames import TaskFinished
from jupiterd.workers.data.progress import Progress, silent
from jupiterd.workers.data.sample_file import SampleWriter
from jupiterd.workers.data.sources import Source, SourceFile, open_source
from jupiterd.workers.link import Task

MAX_FILE_BYTES = 8 << 20
"""A larger file is a table or a dump, and would sit in memory whole."""


@dataclass(frozen=True)
class CollectParams:
    """What decides the outputs, beside the source itself."""

    fraction: float
    salt: str
    language: str
    fetched_at: str
    """The cycle's start, not the time of reading: doing the work again gives the same bytes."""
    dev: float = 0.0
    """Share of the holdout for the validation loss."""
    vault: float = 0.0
    """Share of the holdout that is kept for later."""


def run(task: Task) -> TaskFinished:
    """Do the task that a daemon gave."""
    source_settings: DataSource = TypeAdapter[DataSource](DataSource).validate_python(
        task.params["source"]
    )
    policy = LicensePolicy.model_validate(task.params.get("license_policy", {}))
    holdout = Holdout.model_validate(task.params["holdout"])
    source = open_source(source_settings)
    if not policy.permits(source.license):
        raise InvalidDomainError(
            f"the domain's license_policy doesn't permit {source.license}",
            "change license_policy in the domain file",
        )
    params = CollectParams(
        holdout.fraction,
        holdout.salt,
        str(task.params["language"]),
        str(task.params["fetched_at"]),
        holdout.dev,
        holdout.vault,
    )
    counts = collect(source, task.output_dir, params, task.progress)
    return TaskFinished({"train": "train", "holdout": "holdout"}, counts)


def collect(
    source: Source, output_dir: Path, params: CollectParams, progress: Progress = silent
) -> dict[str, float]:
    """Write the documents into `train` and `holdout` below `output_dir`; return the counts.

    Raises:
        EmptySourceError: no document of the source could be read.
    """
    counts: Counter[str] = Counter(
        dict.fromkeys(("documents", "bytes", "holdout_documents", "holdout_bytes", "skipped"), 0)
    )
    clusters: dict[str, set[str]] = {"": set(), "holdout_": set()}
    files = list(source.files())
    with (
        SampleWriter(output_dir / "train") as train,
        SampleWriter(output_dir / "holdout") as holdout,
    ):
        for number, file in enumerate(files, 1):
            progress(number, len(files), "files")
            text = read_text(file.path)
            if text is None:
                counts["skipped"] += 1
                continue
            text, removed = cleaned(text)
            counts.update({f"removed.{kind}": number for kind, number in removed.items()})
            split = part_of(file.cluster_id, params.salt, params.fraction, params.dev, params.vault)
            held_out = split != TRAIN
            sample = replace(_sample(source, file, text, params), split=split)
            (holdout if held_out else train).add(sample)
            part = "holdout_" if held_out else ""
            counts[f"{part}documents"] += 1
            counts[f"{part}bytes"] += len(text.encode())
            clusters[part].add(file.cluster_id)
    if not counts["documents"] + counts["holdout_documents"]:
        raise EmptySourceError(f"{source.name} {_why_empty(len(files))}")
    return {**counts, "clusters": len(clusters[""]), "holdout_clusters": len(clusters["holdout_"])}


def _why_empty(files: int) -> str:
    if not files:
        return "has no file that the source's pattern matches"
    return f"has no text: none of its files ({files}) can be read as UTF-8 text of 1 byte to 8 MiB"


def read_text(path: Path) -> str | None:
    """Return a file's text; None where it is empty, too large, unreadable or not UTF-8 text."""
    try:
        if not 0 < path.stat().st_size <= MAX_FILE_BYTES:
            return None
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return None
    return text if text.strip() and "\0" not in text else None


def _sample(source: Source, file: SourceFile, text: str, params: CollectParams) -> Sample:
    return Sample(
        id=text_hash(text),
        text=text,
        kind="real",
        depth=0,
        parents=(),
        cluster_id=file.cluster_id,
        source_uri=file.uri,
        revision=source.revision,
        license=source.license,
        collector=source.collector,
        fetched_at=params.fetched_at,
        language=params.language,
    )
