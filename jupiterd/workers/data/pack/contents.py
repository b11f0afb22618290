"""What a round's shards are made of: `contents.json` beside them.

Owns what stands in that file. Doesn't know tokens, or why a source was purged. Equal samples give
equal bytes.
"""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jupiterd.cycle.base.contents_file import CONTENTS_FILE
from jupiterd.cycle.data.lineage import Sample
from jupiterd.cycle.data.purge import Purge

MAX_NAMES = 1000
"""So many different sources, licences and so on are told apart; the rest are counted together."""

OTHERS = "(others)"
_FIELDS = ("source", "kind", "license", "language")
_OF_SYNTHETIC = ("generator", "template")
"""Counted of synthetic samples alone; real ones have none."""


def contents(samples: Sequence[Sample], purge: Purge, left_out: Counter[str]) -> dict[str, Any]:
    """Return counts of these samples by each field, and the proof that purged ones aren't there."""
    found = Counter(source for sample in samples if (source := purge.hit(sample)))
    synthetic = [sample for sample in samples if sample.kind == "synthetic"]
    return {
        "samples": len(samples),
        "bytes": sum(len(sample.text.encode()) for sample in samples),
        **{field: _counted(samples, field) for field in _FIELDS},
        **{field: _counted(synthetic, field) for field in _OF_SYNTHETIC},
        "synthetic_bytes": sum(len(sample.text.encode()) for sample in synthetic),
        "purged": {
            source: {"in_shards": found[source], "left_out": left_out[source]}
            for source in purge.sources
        },
    }


def write_contents(folder: Path, counted: dict[str, Any]) -> None:
    """Write the file into a folder of shards."""
    text = json.dumps(counted, indent=2, sort_keys=True, ensure_ascii=False)
    (folder / CONTENTS_FILE).write_text(text + "\n", encoding="utf-8")


def _counted(samples: Sequence[Sample], field: str) -> dict[str, int]:
    counts = Counter(str(getattr(sample, field)) for sample in samples)
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    named = dict(ranked[:MAX_NAMES])
    rest = sum(count for _, count in ranked[MAX_NAMES:])
    return named | ({OTHERS: rest} if rest else {})
