"""The keys of the documents that a real daemon gives to people's tools, kept in a file.

A change there is one that scripts may have to follow; JUPITER_UPDATE_GOLDEN=1 writes it anew.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path

from jupiterd.cluster.facts.facts import CycleFailed, RoundCommitted
from tests.support.cluster.building import CYCLE, started, training
from tests.support.daemon.shown import shown
from tests.support.daemon.two_nodes import found, serving

GOLDEN = Path(__file__).parent / "golden" / "document_forms.json"

NOUNS = (
    "status", "cycle", "cycles", "train", "data", "audit", "branches", "models", "links", "events",
    "node/one",
)  # fmt: skip
"""Documents that there are without a trained model; those of models have tests of their own."""

VARIES = {"hardware", "load", "versions", "history", "recent", "counts"}
"""Keys whose own keys depend on the machine."""


def form(value: object) -> object:
    """Return the keys of a document; of lists those of all their rows together."""
    if isinstance(value, Mapping):
        return {str(k): "..." if k in VARIES else form(v) for k, v in sorted(value.items())}
    if isinstance(value, list):
        forms = [form(each) for each in value]
        rows = [each for each in forms if isinstance(each, dict)]
        return [{key: each[key] for each in rows for key in each}] if rows else []
    return "value"


async def test_the_keys_of_each_document_are_those_that_are_promised(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(started(), training()))
        one.observers.events.look()
        await one.replica.append(2, [RoundCommitted(CYCLE, 1, "", "HOLD", "why")])
        await one.replica.append(2, [CycleFailed(CYCLE, "failed", "it broke", "mend it")])
        one.observers.events.look()
        told = {noun: form(await shown(one, noun)) for noun in NOUNS}
    if os.environ.get("JUPITER_UPDATE_GOLDEN"):
        GOLDEN.write_text(json.dumps(told, indent=1, sort_keys=True) + "\n")
    kept = json.loads(GOLDEN.read_text())
    assert told.keys() == kept.keys()
    for noun in NOUNS:
        assert told[noun] == kept[noun], noun
        assert "schema" in told[noun], noun
