"""The time-outs of membership and election.

Owns the numbers. Doesn't know what happens when one runs out (`failure_detector`, `election`,
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
    """A member silent for this long gets no new work. Ten heartbeats; Wi-Fi often fails for 1 s."""
    quiet_s: float = 2.4
    """Nobody waits for an answer of a node that it hasn't heard itself for this long. Two followers
    exchange heartbeats once a second. `Election.passed_over` excludes further nodes."""
    fresh_s: float = 1.7
    """A heartbeat counts in the election only if its sender had heard this node within this time:
    another node may lead by now. A new leader takes over 2.2 s after the old one's last heartbeat
    at the earliest, and one of ours may have reached it a beat later. Two followers exchange
    heartbeats once a second."""
    gone_s: float = 15.0
    """A member silent for this long is gone; longer than any stall of a loop and most outages."""
    lag_limit_s: float = 1.0
    """After a tick this late, the silence of others proves nothing: our own loop stood still."""
    rumour_margin_s: float = 2.0
    """A report must be this much newer than a goodbye to undo it: reports take time to travel."""
    election_min_s: float = 1.5
    """The shortest time a follower waits for its leader before it requests a pre-vote."""
    election_max_s: float = 3.0
    """The longest such time."""
    gang_max_s: float = 1.7
    """The longest such time if the leader runs a gang: without it all machines stand still. The
    gang's watchdog gives up a rank that is silent for 2 s, too."""
    rank_s: float = 0.3
    """Each steadier present node adds this to the wait."""
    hurry_s: float = 0.3
    """The range of the random wait after the leader itself said that it no longer leads."""
    answer_s: float = 1.0
    """How long a node may take to answer a pre-vote request; there are two requests."""
    gang_answer_s: float = 0.7
    """The same for the first request if the silent leader ran a gang."""
    alone_settle_s: float = 1.0
    """How long a node that sees no other waits before it leads itself."""


LAN = Timing()
"""For machines in one home or office."""
