"""Where a sample comes from, as people read it.

Pure. Owns the words and their order; doesn't know where the document comes from.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from jupiterd.formats import plain
from jupiterd.ids import short

Record = Mapping[str, Any]

_PLAIN = (
    ("source", "source"),
    ("source_uri", "from"),
    ("revision", "revision"),
    ("license", "licence"),
    ("robots_ok", "robots.txt"),
    ("fetched_at", "fetched"),
    ("collector", "collector"),
    ("extractor", "extractor"),
    ("source_hash", "bytes"),
    ("language", "language"),
    ("template", "template"),
    ("conversation", "conversation"),
    ("filters", "filters"),
    ("duplicate_cluster", "near copies of"),
    ("cluster_id", "cluster"),
    ("split", "split"),
)
"""Key of the record -> what it is called; what is empty isn't shown."""

_LINE_CHARACTERS = 100


def why_lines(why: Record) -> list[str]:
    """Return the whole chain, from the sample to the real ones that it was made from."""
    lines = list(_position(why["position"])) if why.get("position") else []
    return [*lines, *_chain(why, "")]


def _position(at: Record) -> Iterator[str]:
    yield (
        f"token {at['offset']:,} is of document {at['document']:,}, tokens "
        f"[{at['first']:,}, {at['end']:,}), in shards {short(at['shards'])} of "
        f"{plain(at['name'])}, round {at['round']}"
    )


def _chain(record: Record, indent: str) -> Iterator[str]:
    for line in _record(record):
        yield indent + line
    for parent in record.get("parents", ()):
        yield f"{indent}made from:"
        yield from _chain(parent, indent + "  ")


def _record(record: Record) -> Iterator[str]:
    sample = record["sample"]
    if record.get("missing"):
        yield f"sample {short(sample['id'])}, whose record is on no node in reach"
        return
    kind, size = sample.get("kind", ""), sample.get("text_bytes")
    yield f"sample {sample['id']}" + (f"  {kind}, {size:,} bytes" if size is not None else "")
    if data_set := record.get("data_set"):
        yield "  " + ", ".join(f"{name} {plain(value)}" for name, value in sorted(data_set.items()))
    for key, name in _PLAIN:
        if sample.get(key) not in ("", None):
            yield f"  {name:<15}{_value(sample[key])}"
    yield from _numbers("sampler", sample.get("sampler"))
    yield from _numbers("scores", sample.get("filter_scores"))
    yield from _makers(record, sample)
    if text := sample.get("text_begins"):
        yield f"  {'text':<15}{plain(text.splitlines()[0])[:_LINE_CHARACTERS]}"


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "allowed" if value else "forbidden"
    return plain(str(value))


def _numbers(name: str, values: Record | None) -> Iterator[str]:
    if values:
        shown = ", ".join(f"{plain(key)} {plain(value)}" for key, value in sorted(values.items()))
        yield f"  {name:<15}{shown}"


def _makers(record: Record, sample: Record) -> Iterator[str]:
    if generator := record.get("generator"):
        name = plain(generator["name"])
        yield (
            f"  {'generator':<15}{short(generator['artifact'])}, the model of {name}, "
            f"round {generator['round']}"
        )
    elif sample.get("generator"):
        yield f"  {'generator':<15}{plain(sample['generator'])}"
    for each in record.get("seen", ()):
        yield (
            f"  {each['phase']:<15}{plain(each['output'])}, {plain(each['name'])} round "
            f"{each['round']}, by {plain(each['node']['name'])}"
        )
    for each in record.get("packed", ()):
        yield (
            f"  {'trained on':<15}{plain(each['name'])} round {each['round']}, tokens "
            f"[{each['first']:,}, {each['end']:,}) of shards {short(each['shards'])}"
        )
