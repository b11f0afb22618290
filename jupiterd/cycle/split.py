"""Which clusters of documents are held out: a keyed hash, the same on every machine and for ever.

Owns that decision alone. Doesn't know documents, files or domains.
"""

from blake3 import blake3

PARTS = 1000
"""A fraction is held out in steps of a thousandth."""


def in_holdout(cluster_id: str, salt: str, fraction: float) -> bool:
    """Say whether everything of this cluster (site, repository, top-level module) is held out.

    The answer depends on nothing but these arguments, so documents that arrive later fall on the
    same side, and a larger fraction holds out everything that a smaller one does.
    """
    # The zero byte keeps ("ab", "c") and ("a", "bc") apart.
    digest = blake3(f"{salt}\0{cluster_id}".encode()).digest(8)
    return int.from_bytes(digest, "big") % PARTS < round(fraction * PARTS)
