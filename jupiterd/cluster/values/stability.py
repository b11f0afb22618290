"""How steady a machine is: whom an election prefers, of those that may lead.

Owns the order of what counts. Doesn't know how any of it is measured. Speed isn't asked for: a
leader that goes away costs everybody more than a slow one.
"""

STEADY_LAG_S = 0.25
"""A loop that comes later than this is kept busy by something else."""

SETTLED_S = 600.0
"""Who has been up for so long is likely to stay."""


def stability(
    *,
    on_mains: bool,
    is_wired: bool,
    lag_s: float,
    uptime_s: float,
    is_of_most: bool = True,
    is_trusted: bool = True,
) -> int:
    """Return a number that is greater for a steadier machine.

    That somebody has said yes to it (`is_trusted`) counts first: what another leader decides of
    members counts for nothing. Then that no other version of Jupiter runs on more machines
    (`is_of_most`), for work goes to nodes of the leader's own; then mains power, a wire, a loop in
    time, and time since the start: each outweighs all that come after it.
    """
    settled = uptime_s >= SETTLED_S
    marks = (is_trusted, is_of_most, on_mains, is_wired, lag_s <= STEADY_LAG_S, settled)
    return sum(mark << place for place, mark in enumerate(reversed(marks)))
