"""`jupiterd heal`: takes out of a state folder the terms that no cluster comes to.

Owns reading what older programs have let in, and what is on disk afterwards. Doesn't know which
terms those are (`cluster.ledger.term_repair`).
"""

import contextlib
from collections import Counter
from collections.abc import Sequence

from jupiterd.cluster.ledger.entry import Entry, parse
from jupiterd.cluster.ledger.snapshot import compose_snapshot, parse_damaged_snapshot, seal_snapshot
from jupiterd.cluster.ledger.term_repair import RepairedTerms, heal
from jupiterd.cluster.membership.fencing import Obeyed
from jupiterd.daemon.runtime.state_dir import StateDir
from jupiterd.errors import CorruptLedgerError
from jupiterd.ids import ClusterId, short
from jupiterd.net.identity import Identity
from jupiterd.store.ledger_file import CLUSTER_KEY, LedgerFile


def heal_state(state_dir: StateDir, wanted: int | None) -> list[str]:
    """Heal the ledger in a state folder that no daemon uses, and say what was done.

    wanted: the highest term, where people know it

    Raises:
        StateDirError, DiskFullError, CorruptLedgerError: it can't be read or written.
    """
    file = LedgerFile(state_dir.ledger)
    try:
        return _heal(file, Identity.load_or_create(state_dir.key), wanted)
    finally:
        file.close()


def _heal(file: LedgerFile, identity: Identity, wanted: int | None) -> list[str]:
    raws, raw_snapshot = file.load(), file.load_snapshot()
    entries = _readable(raws)
    snapshot = None if raw_snapshot is None else parse_damaged_snapshot(raw_snapshot)
    healed = heal(entries, _readable(file.load_roster()), snapshot, wanted)
    before = int(file.get("term") or 0)
    if wanted is None and before <= healed.term and len(healed.entries) == len(raws):
        return [f"nothing to heal: no term lies far above the highest, {healed.term}"]
    cluster = ClusterId(file.get(CLUSTER_KEY) or "")
    file.replace(
        cluster,
        [entry.raw for entry in healed.entries],
        None if snapshot is None else _summed_up(healed, cluster, identity),
        [entry.raw for entry in healed.roster],
    )
    file.set("term", str(healed.term))
    if Obeyed.parse(file.get("obeyed") or "").term > healed.term:
        file.set("obeyed", "")
    return _lines(healed, before, len(raws) - len(entries))


def _readable(raws: Sequence[bytes]) -> list[Entry]:
    """Return what is within its bounds; the rest nobody takes any more."""
    found: list[Entry] = []
    for raw in raws:
        with contextlib.suppress(CorruptLedgerError):
            found.append(parse(raw))
    return found


def _summed_up(healed: RepairedTerms, cluster: ClusterId, identity: Identity) -> bytes:
    """Return the snapshot without what was left out, signed by this node."""
    body = compose_snapshot(cluster, identity.node_id, healed.tips, healed.facts)
    return seal_snapshot(body, identity.sign(body))


def _lines(healed: RepairedTerms, before: int, unreadable: int) -> list[str]:
    lines = [f"the highest term is {healed.term} now; it was {before}"]
    counts = Counter(entry.writer.node for entry in healed.left_out)
    lines += [f"left out: {n} entries of node {short(node)}" for node, n in counts.items()]
    if unreadable:
        lines.append(f"left out: {unreadable} entries with numbers out of bounds")
    if healed.lost_facts:
        lines.append(f"left out: {healed.lost_facts} facts of the ledger in short")
    lines.append("do the same on every machine before you start jupiterd on any of them")
    return lines
