"""What a node says that has a join token and doesn't see the token's cluster.

Owns the words. Doesn't know how clusters are seen, or what is done with the token.
"""

from collections.abc import Iterable

from jupiterd.cluster.membership.admission import Summary
from jupiterd.ids import ClusterId, short

PATIENCE_S = 10.0
"""Nobody in sight is no news before: finding others takes a second or two."""


def token_wait_words(
    wanted: ClusterId, ours: ClusterId, seen: Iterable[Summary], waited_s: float
) -> str:
    """Return which cluster is looked for and who is in sight instead; empty where there is none.

    Args:
        wanted: the cluster of the token.
        ours: the cluster that this node is in now.
        seen: what was in sight of late.
        waited_s: how long this node has been looking.
    """
    others = {summary.cluster: summary.title for summary in seen if summary.cluster != ours}
    if wanted == ours or wanted in others:
        return ""
    if others:
        return f"{short(wanted)}, and sees only {' and '.join(sorted(others.values()))}"
    return f"{short(wanted)}, and nobody answers yet" if waited_s >= PATIENCE_S else ""
