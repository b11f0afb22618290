"""The list of all cycles, as a daemon tells it."""

from dataclasses import replace
from pathlib import Path

from jupiterd.ids import CycleId
from tests.support.cluster.building import (
    CYCLE,
    NODES,
    checkpoint,
    commanded,
    judged,
    paused,
    round_over,
    started,
    training,
)
from tests.support.daemon.shown import shown
from tests.support.daemon.two_nodes import found, serving

LATER, LAST = CycleId("e" * 16), CycleId("f" * 16)


async def test_every_cycle_has_a_row_the_newest_first(tmp_path: Path) -> None:
    first = (started(1), checkpoint("k1", is_final=True), judged("HOLD", "k1"), round_over("k1"))
    second = replace(started(), cycle=LATER, started_at="2026-02-01T00:00:00Z")
    third = replace(started(), cycle=LAST, started_at="2026-03-01T00:00:00Z")
    run = replace(training(), cycle=CycleId("1" * 16))
    async with serving(tmp_path, "one") as one:
        await found(
            one,
            facts=(
                *first,
                *(second, replace(paused(1, NODES[2]), cycle=LATER)),
                *(third, replace(commanded("stopped", 1), cycle=LAST), run),
            ),
        )
        rows = (await shown(one, "cycles"))["cycles"]
        assert [(row["id"], row["state"]) for row in rows] == [
            (LAST, "stopped"), (LATER, "paused"), (CYCLE, "finished"),
        ]  # fmt: skip
        assert rows[1]["paused"]["node"] == NODES[2]
        assert (rows[2]["rounds_done"], rows[2]["verdict"], rows[2]["val_bpb"]) == (1, "HOLD", 2.5)
        assert (rows[0]["rounds_done"], rows[0]["verdict"]) == (0, None)
