"""Writes the samples of a round into one file.

Owns the two formats. Doesn't know which samples a round has: the daemon names their folders.
"""

import importlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

from jupiterd.ctl.output.atomic_file import whole_file
from jupiterd.cycle.data.lineage import Sample
from jupiterd.cycle.data.purge import Purge
from jupiterd.errors import ConflictError, MissingExtraError
from jupiterd.locations import pip_install
from jupiterd.store.sample_lookup import document_ids, stored_samples

JSONL, PARQUET = "jsonl", "parquet"
ROWS = 10_000
"""Rows in one row group of a Parquet file; the export has one group in memory."""


def write_export(exported: Mapping[str, Any], form: str, path: Path) -> int:
    """Write the samples in the folders that the daemon named; return their number.

    Raises:
        ConflictError: the file exists already.
        MissingExtraError: the format is Parquet, and pyarrow isn't installed.
        UsageError: the file can't be written.
        DiskFullError: the disk is full.
    """
    write = _write_parquet if form == PARQUET else _write_jsonl
    if path.exists():
        raise ConflictError(f"{path} is there already", "choose another file, or remove it")
    with whole_file(path) as draft:
        return write(samples_of(exported), draft)


def samples_of(exported: Mapping[str, Any]) -> Iterator[Sample]:
    """Return an iterator of the samples in the round's shards, without those purged since."""
    packed = document_ids(Path(exported["shards"]))
    purge = Purge(exported["purged"])
    purge.learn(_exported_samples(exported))
    return (sample for sample in purge.left(_exported_samples(exported)) if sample.id in packed)


def _exported_samples(exported: Mapping[str, Any]) -> Iterator[Sample]:
    return (sample for folder in exported["samples"] for sample in stored_samples(Path(folder)))


def _write_jsonl(samples: Iterable[Sample], path: Path) -> int:
    count = 0
    with path.open("w", encoding="utf-8", errors="surrogatepass", newline="\n") as file:
        for count, sample in enumerate(samples, 1):  # noqa: B007 - it is returned
            file.write(sample.to_json() + "\n")
    return count


def _write_parquet(samples: Iterator[Sample], path: Path) -> int:
    try:
        arrow = importlib.import_module("pyarrow")
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        install = pip_install("jupiterd[parquet]")
        raise MissingExtraError("Parquet needs the package pyarrow", install) from error
    kinds = {
        "depth": arrow.int32(),
        "parents": arrow.list_(arrow.string()),
        "robots_ok": arrow.bool_(),
        "first_answer": arrow.int32(),
    }
    names = Sample.__dataclass_fields__
    schema = arrow.schema([(name, kinds.get(name, arrow.string())) for name in names])
    count = 0
    with parquet.ParquetWriter(str(path), schema, compression="zstd") as writer:
        while rows := [_row(sample) for sample in islice(samples, ROWS)]:
            writer.write_table(arrow.Table.from_pylist(rows, schema=schema))
            count += len(rows)
    return count


def _row(sample: Sample) -> dict[str, Any]:
    """Return a sample's fields; maps and messages become JSON texts, as their keys differ."""
    fields = asdict(sample)
    fields["text"] = sample.text.encode("utf-8", "replace").decode()  # lone surrogates become `?`
    for name in ("sampler", "filter_scores", "messages"):
        fields[name] = json.dumps(fields[name], sort_keys=True)
    return {**fields, "parents": list(sample.parents)}
