"""Which clusters of documents are held out, and for what: a keyed hash that never changes.

Owns that decision alone. Doesn't know documents, files or domains.

The parts of the holdout are disjoint. `dev` may be looked at as often as people like; `gate` is
what a candidate is judged on, one look for each attempt; `vault` is shown to nobody, so that it can
tell one day whether the gate was over-fitted.
"""

from blake3 import blake3

PARTS = 1000
"""A fraction is held out in steps of a thousandth."""

TRAIN, DEV, GATE, VAULT = "train", "dev", "gate", "vault"
HELD_OUT = frozenset({DEV, GATE, VAULT})


def in_holdout(cluster_id: str, salt: str, fraction: float) -> bool:
    """Say whether everything of this cluster (site, repository, top-level module) is held out.

    The answer depends on nothing but these arguments, so documents that arrive later fall on the
    same side, and a larger fraction holds out everything that a smaller one does.
    """
    return _place(cluster_id, salt) < round(fraction * PARTS)


def part_of(
    cluster_id: str, salt: str, fraction: float, dev: float = 0.0, vault: float = 0.0
) -> str:
    """Return what everything of this cluster is for: `train`, or a part of the holdout.

    `dev` and `vault` are shares of the holdout; the gate has the rest. What is held out stays in
    its part when more is held out.
    """
    if not in_holdout(cluster_id, salt, fraction):
        return TRAIN
    place = _place(cluster_id, f"{salt}\0part")
    if place < round(dev * PARTS):
        return DEV
    return VAULT if place >= PARTS - round(vault * PARTS) else GATE


def held_out_part(split: str) -> str:
    """Return the part of a held-out sample; one from before there were parts is for the gate."""
    return split if split in HELD_OUT else GATE


def _place(cluster_id: str, salt: str) -> int:
    # The zero byte keeps ("ab", "c") and ("a", "bc") apart.
    digest = blake3(f"{salt}\0{cluster_id}".encode()).digest(8)
    return int.from_bytes(digest, "big") % PARTS
