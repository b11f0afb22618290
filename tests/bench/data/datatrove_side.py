"""What datatrove makes of the same documents; run by the Python of its own environment.

python datatrove_side.py rules|near DOCUMENTS.json: prints {"seconds", "reasons"} as JSON, that is
seconds of a core, and for each document why it was dropped, or an empty text.
"""

# Before datatrove, which takes it for granted that somebody has imported it.
import importlib.metadata  # noqa: F401
import json
import sys
import tempfile
import time
from pathlib import Path

from datatrove.data import Document
from datatrove.pipeline.dedup import (
    MinhashDedupBuckets,
    MinhashDedupCluster,
    MinhashDedupFilter,
    MinhashDedupSignature,
)
from datatrove.pipeline.filters import (
    C4QualityFilter,
    FineWebQualityFilter,
    GopherQualityFilter,
    GopherRepetitionFilter,
)
from datatrove.utils.text import split_into_words


def rules(documents):
    """Return why each document is dropped.

    The filters and their settings are FineWeb's. C4's comes last, because it rewrites the text.
    """
    filters = (
        GopherRepetitionFilter(),
        GopherQualityFilter(),
        FineWebQualityFilter(),
        C4QualityFilter(filter_no_terminal_punct=False),
    )
    return [_first_reason(filters, document) for document in documents]


def _first_reason(filters, document):
    for each in filters:
        found = each.filter(document)
        if found is not True:
            return found[1]
    return ""


def near(documents):
    """Return which documents are near-duplicates of another one that is kept."""
    with tempfile.TemporaryDirectory() as folder:
        found, pairs, removed = (f"{folder}/{name}" for name in ("found", "pairs", "removed"))
        MinhashDedupSignature(found).run(documents)
        for bucket in range(14):
            MinhashDedupBuckets(found, pairs).run(None, bucket, 14)
        MinhashDedupCluster(pairs, removed).run(None, 0, 1)
        kept = {document.id for document in MinhashDedupFilter(removed).run(documents)}
    return ["" if document.id in kept else "near-duplicate" for document in documents]


def main():
    """Judge, and print."""
    job = {"rules": rules, "near": near}[sys.argv[1]]
    rows = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    documents = [Document(text=text, id=name) for name, text in rows]
    split_into_words("The tokenizer is loaded before the clock starts.")
    began_s = time.process_time()
    reasons = job(documents)
    print(json.dumps({"seconds": time.process_time() - began_s, "reasons": reasons}))


main()
