"""Lost packets alone make nobody gone; the long form is `make simulate-hours`."""

from dataclasses import replace

import pytest

from jupiterd.cluster.membership.failure_detector import Liveness
from jupiterd.cluster.values.timing import LAN
from tests.simulation.hours import LINKS, LOSSES, Hours, count_verdicts

NODE_HOURS = 4.0


@pytest.mark.full
@pytest.mark.parametrize("links", LINKS)
@pytest.mark.parametrize("loss", LOSSES)
def test_nobody_is_taken_for_gone_on_a_lossy_link(links: str, loss: float) -> None:
    counts = count_verdicts(0, NODE_HOURS, loss, LINKS[links])
    assert sum(counted.node_hours for counted in counts.values()) == NODE_HOURS
    gone = {size: counted.verdicts[Liveness.GONE] for size, counted in counts.items()}
    assert not any(gone.values()), gone


def test_the_count_sees_verdicts_that_come_too_soon() -> None:
    hasty = replace(LAN, suspect_s=1.0, gone_s=2.0)
    counted = Hours(0, 2, 0.3, LINKS["streams"], timing=hasty).run(0.5)
    assert counted.verdicts[Liveness.GONE] > 0


def test_a_silent_network_makes_everybody_gone() -> None:
    counted = Hours(0, 3, 1.0, LINKS["datagrams"]).run(0.02)
    assert counted.verdicts[Liveness.GONE] == 3 * 2
