"""How long the cluster waits for whom.

Owns the numbers. Doesn't know what is done when one of them runs out (`membership`, `election`,
`presence`).
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """Every wait of membership and election, in seconds; the defaults are for a local network."""

    beat_s: float = 0.5
    """From one heartbeat and tick to the next."""
    asleep_s: float = 3.0
    """A tick later than this means that the loop was asleep, not only busy."""
    suspect_s: float = 5.0
    """Not heard for so long: no new work. Ten heartbeats of 0.5 s; Wi-Fi is often out for 1 s."""
    quiet_s: float = 2.4
    """Not heard by ourselves for so long: nobody waits for its answer to anything. A follower that
    takes over from a silent leader does so after 2.5 s at the earliest; two beat once a second."""
    fresh_s: float = 2.0
    """Whoever last heard us longer ago than that when it beat tells nothing of who leads: others
    may have taken over since. Two followers beat once a second, so an echo is as old at times."""
    gone_s: float = 15.0
    """Not heard for so long: act on it. Bridges every stall of a loop and nearly every outage."""
    lag_limit_s: float = 1.0
    """If our own loop came so late, others' silence proves nothing."""
    rumour_margin_s: float = 2.0
    """A report undoes a goodbye only if it is so much newer: reports travel a while."""
    election_min_s: float = 1.5
    """A follower that hears no leader waits at least so long before it asks to lead."""
    election_max_s: float = 3.0
    """And at most so long."""
    rank_s: float = 0.3
    """Added to the wait for each present node that is steadier."""
    hurry_s: float = 0.3
    """The spread of the wait where the leader itself has said that it no longer leads."""
    answer_s: float = 1.0
    """A node asked for its pre-vote has so long to answer, twice."""
    alone_settle_s: float = 1.0
    """A node that sees nobody leads itself after so long."""


LAN = Timing()
"""For machines in one home or office."""
