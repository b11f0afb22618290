"""What an audit proves of one round, as a row for front ends.

Owns its keys. Doesn't know how anything is proved (`cycle.data.audit`,
`cycle.islands.outer_audit`).
"""

from typing import Any

from jupiterd.cycle.data.audit import RoundAudit


def round_document(each: RoundAudit) -> dict[str, Any]:
    """Return a round's proof."""
    passes, rest = each.passes
    return {
        "round": each.round,
        "sequences": each.sequences,
        "cursor": each.cursor,
        "tokens": each.tokens,
        "began_with_tokens": each.began_tokens,
        "trunk_cursor": each.trunk_cursor,
        "passes": passes,
        "of_next_pass": rest,
        "ranges": [
            {
                "first": part.first,
                "end": part.end,
                "epoch": part.attempt,
                "attempt": part.attempt,
                "checkpoint": part.name,
            }
            for part in each.ranges
        ],
        "problems": list(each.problems),
    }
