"""A sample of a document that was read: all text that is stored, or looked at, passes here.

Owns that step, without its secrets. Doesn't know readers, rules or files.
"""

from collections.abc import Mapping

from jupiterd.cycle.data.lineage import Sample, text_hash
from jupiterd.cycle.text_rules.markup.cleaned_markup import cleaned_markup
from jupiterd.cycle.text_rules.secrets import cleaned
from jupiterd.workers.data.collect.cleaned_document import Cleaning, with_kind
from jupiterd.workers.data.collectors.collector import CollectedDocument


def collected_sample(
    found: CollectedDocument,
    collector: str,
    language: str,
    source: str,
    clean: Cleaning = cleaned_markup,
) -> tuple[Sample, Mapping[str, int]]:
    """Return the sample, and how many secrets of each kind its text lost.

    Args:
        found: what was read.
        collector: name@version of who read it.
        language: the domain's; empty: not known yet.
        source: the source's name in the domain file.
        clean: cleans its markup.

    Raises:
        UnreadableError: `clean` gave it up.
    """
    text, secrets = cleaned(found.text)
    read = Sample(
        id=text_hash(text),
        text=text,
        kind="real",
        depth=0,
        parents=(),
        cluster_id=found.cluster_id,
        source_uri=found.uri,
        revision=found.revision,
        license=found.license,
        collector=collector,
        fetched_at=found.fetched_at,
        language=language,
        source=source,
        source_hash=found.source_hash,
        extractor=found.extractor,
        robots_ok=found.robots_ok,
    )
    return with_kind(read, found.uri if found.name is None else found.name, clean), secrets
