"""What datatrove makes of the same documents; run by the Python of its own environment.

python datatrove_side.py JOB DOCUMENTS.json: prints {"seconds", "reasons"} as JSON, that is
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


def rules(documents, **gopher):
    """Return why each document is dropped.

    The filters and their settings are FineWeb's. C4's comes last, because it rewrites the text.
    """
    filters = (
        GopherRepetitionFilter(),
        GopherQualityFilter(**gopher),
        FineWebQualityFilter(),
        C4QualityFilter(filter_no_terminal_punct=False),
    )
    return [_first_reason(filters, document) for document in documents]


def rules_but_letters(documents):
    """Return the same without the rule about words with a letter."""
    return rules(documents, max_non_alpha_words_ratio=None)


def rules_es(documents):
    """Return the same for Spanish, which has none of the English stop words."""
    return rules(documents, min_stop_words=None)


def few_letters(documents):
    """Return which documents only the rule about words with a letter drops."""
    shares = (_share_with_letter(split_into_words(document.text)) for document in documents)
    return ["few-letters" if share < 0.8 else "" for share in shares]


def _share_with_letter(words):
    return sum(any(map(str.isalpha, word)) for word in words) / max(1, len(words))


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
    jobs = {
        "rules": rules_but_letters,
        "rules-en": rules,
        "rules-es": rules_es,
        "few-letters": few_letters,
        "near": near,
    }
    job = jobs[sys.argv[1]]
    rows = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    documents = [Document(text=text, id=name) for name, text in rows]
    split_into_words("The tokenizer is loaded before the clock starts.")
    began_s = time.process_time()
    reasons = job(documents)
    print(json.dumps({"seconds": time.process_time() - began_s, "reasons": reasons}))


main()
