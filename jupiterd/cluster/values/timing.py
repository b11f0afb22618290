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
    """Not heard by ourselves for so long: nobody waits for its answer to anything. Two followers
    beat once a second; whoever didn't answer the winner of an election is left out beside that."""
    fresh_s: float = 1.7
    """Whoever last heard us longer ago than that when it beat tells nothing of who leads: others
    may have taken over since. They do so 2.2 s after the leader's last beat at the earliest, and
    one of ours may have reached it a beat later. Two followers beat once a second."""
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
    gang_max_s: float = 1.7
    """And at most so long where that leader runs a gang. Without it all machines stand still; a
    rank that is silent for 2 s is given up, too."""
    rank_s: float = 0.3
    """Added to the wait for each present node that is steadier."""
    hurry_s: float = 0.3
    """The spread of the wait where the leader itself has said that it no longer leads."""
    answer_s: float = 1.0
    """A node asked for its pre-vote has so long to answer, twice."""
    gang_answer_s: float = 0.7
    """The first time only so long where the unheard leader ran a gang."""
    alone_settle_s: float = 1.0
    """A node that sees nobody leads itself after so long."""


LAN = Timing()
"""For machines in one home or office."""
