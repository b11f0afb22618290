"""How the leader closes a round."""

from dataclasses import replace
from typing import cast

import pytest

from jupiterd.cluster.facts import LineParked, LinePinned, RoundCommitted, VerdictReached
from jupiterd.cycle.work import WorkResult
from jupiterd.daemon.conductor import CycleConductor
from jupiterd.daemon.leading import Leading
from jupiterd.errors import LineChangedError
from jupiterd.ids import ArtifactId
from jupiterd.locations import config_folder
from tests.unit.cluster.building import started
from tests.unit.daemon.test_gang_conductor import CYCLE, Recording, checkpoint

JUDGED = WorkResult(
    {"verdict": ArtifactId("4" * 64)},
    {},
    {"verdict": "PROMOTE", "reason": "better", "val_bpb": 2.5},
)


def a_trained_round() -> tuple[Recording, CycleConductor]:
    folder = config_folder()
    start = replace(
        started(),
        cycle=CYCLE,
        domain_yaml=(folder / "domains" / "python.yaml").read_text(),
        model_yaml=(folder / "models" / "1m.yaml").read_text(),
    )
    term = Recording(start, replace(checkpoint("k1", step=100), is_final=True))
    return term, CycleConductor(cast("Leading", term), CYCLE)


async def test_a_round_is_closed_on_the_line_that_counts() -> None:
    term, conductor = a_trained_round()
    await conductor._close(conductor._view(), JUDGED)
    assert [type(fact) for fact in term.recorded] == [VerdictReached, RoundCommitted]
    assert term.state.generator == "k1"


async def test_a_round_whose_line_counts_no_more_is_not_closed() -> None:
    term, conductor = a_trained_round()
    view = conductor._view()
    await term.record(checkpoint("x1", step=5), LinePinned(CYCLE, "x1", 1))
    with pytest.raises(LineChangedError, match="round 1 is no longer the end"):
        await conductor._close(view, JUDGED)
    assert not any(isinstance(fact, RoundCommitted) for fact in term.recorded)
    assert conductor._view().trained is None


async def test_what_waits_for_a_checkpoint_is_given_up_once_another_line_counts() -> None:
    term, conductor = a_trained_round()
    view = conductor._view()
    conductor._check_line(view)
    await term.record(LineParked(CYCLE, "k1", is_parked=True, edit=1))
    with pytest.raises(LineChangedError, match="another line than that of round 1"):
        conductor._check_line(view)
