"""Where a sample comes from: the record that travels with every piece of text.

Owns the record, its identity and its JSON line. Doesn't know collectors, filters or files.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from blake3 import blake3

from jupiterd.errors import Bug
from jupiterd.protocol.frames import Scalar

_OF_CONVERSATIONS = ("messages", "first_answer")

MAX_DEPTH = 2
"""Real text has depth 0; a sample made from it 1; nothing is made from a sample of depth 2."""


def text_hash(text: str) -> str:
    """Return BLAKE3 of the text in UTF-8, 64 hex digits: the id of a sample."""
    return blake3(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class Sample:
    """One piece of text with its provenance; immutable."""

    id: str
    text: str
    kind: str
    """`real` or `synthetic`."""
    depth: int
    parents: tuple[str, ...]
    """Ids of the samples it was made from; a synthetic one has at least one."""
    cluster_id: str
    """What must stay together in a split: site, repository, book, top-level module."""
    source_uri: str
    revision: str
    license: str
    """SPDX id, or `unknown`."""
    collector: str
    """Name@version of what fetched or made it."""
    fetched_at: str
    language: str = ""
    template: str = ""
    generator: str = ""
    """Artifact id of the model that wrote it."""
    sampler: Mapping[str, Scalar] = field(default_factory=dict[str, Scalar])
    source: str = ""
    """Name of the data source in the domain file; a made sample has its parent's."""
    source_hash: str = ""
    """BLAKE3 of the bytes that were fetched, before anything was taken out of them."""
    extractor: str = ""
    """Name@version of what made text of those bytes; empty where they were text."""
    robots_ok: bool | None = None
    """Whether the site's robots.txt allowed the fetch; None where there is no such question."""
    document_kind: str = ""
    """What kind of document it is, as `text_rules.document_kind` writes it: `prose`, `code:python`;
    empty where an older version collected it."""
    filters: str = ""
    """Name@version of the filters that kept it."""
    filter_scores: Mapping[str, float] = field(default_factory=dict[str, float])
    duplicate_cluster: str = ""
    """Id of the first sample of its near-duplicates, where there were any."""
    split: str = "train"
    """`train`, or the part of the holdout: `dev`, `gate` or `vault`."""
    messages: tuple[Mapping[str, str], ...] = ()
    """What each side says, {role, content}, where the text is a conversation: a row of instruction
    data. The text says the same, without a chat template."""
    first_answer: int = 0
    """What the assistant says before that message is part of the question."""

    def __post_init__(self) -> None:
        if self.kind == "synthetic" and not (self.parents and 1 <= self.depth <= MAX_DEPTH):
            raise Bug(f"sample {self.id[:8]} is synthetic without a real parent")
        if self.kind == "real" and (self.parents or self.depth):
            raise Bug(f"sample {self.id[:8]} is real and names parents")

    def to_json(self) -> str:
        """Return one JSON line without its end; keys sorted, so equal samples have equal bytes.

        Of what is no conversation it says nothing of one, as before there were any.
        """
        said = asdict(self)
        for name in _OF_CONVERSATIONS:
            if not said[name]:
                del said[name]
        return json.dumps(said, ensure_ascii=False, sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, line: str) -> "Sample":
        """Rebuild a sample from its line; raises Bug where it isn't one."""
        try:
            fields: dict[str, Any] = json.loads(line)
            fields["parents"] = tuple(fields["parents"])
            fields["messages"] = tuple(fields.get("messages", ()))
            return cls(**fields)
        except (ValueError, TypeError, KeyError) as error:
            raise Bug("a line of a sample file is no sample") from error
