"""Every alarm that there is ends with its cause: each is raised, and seen to end.

The clock that the daemon's parts read is a virtual one. A new kind of alarm needs a case here.
"""

from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from jupiterd.cluster.health import alerts, health
from jupiterd.cluster.ledger.dismissals import GRACE_S
from jupiterd.ctl.diagnose.status import ailments_of
from tests.support.daemon.alarm_desk import Desk, Ending
from tests.support.daemon.machine_alarms import (
    alone,
    alone_locally,
    behind,
    clock_differs,
    clone,
    clone_of_member,
    contradiction,
    disk,
    link_out,
    no_effect,
    no_engine,
    no_leader,
    node_gone,
    node_suspect,
    node_waits,
    node_walked_in,
    peer_unreached,
    pending_locally,
    pending_node,
    removed,
    shared_address,
    sought,
    tcp_blocked,
    tcp_silent,
    trusts_lan,
    version_differs,
)
from tests.support.daemon.run_alarms import (
    disk_low,
    gang_knocked,
    generator_lost,
    held_out_risen,
    loss_high,
    loss_nan,
    loss_spike,
    mostly_dropped,
    not_offered,
    port_crowded,
    run_failed,
    stalled_step,
    throttling,
    verdict,
)
from tests.support.daemon.shown import status_of

CASES: dict[str, Callable[[Desk], Ending]] = {
    case.__name__.replace("_", "-"): case
    for case in (
        clone, removed, disk, link_out, no_leader, pending_node, pending_locally, sought, behind,
        no_engine, trusts_lan, contradiction, no_effect, clone_of_member, node_gone, node_suspect,
        shared_address, clock_differs, tcp_blocked, tcp_silent, peer_unreached, version_differs,
        node_waits, node_walked_in, alone, alone_locally, loss_nan, run_failed, stalled_step,
        loss_spike, loss_high, held_out_risen, generator_lost, not_offered, gang_knocked,
        port_crowded, disk_low, throttling, mostly_dropped, verdict,
    )
}  # fmt: skip


OWN_TROUBLE = {"clone", "removed", "disk", "link-out", "disk-low", "throttling"}
"""What makes the container of the machine ill that says it, and no other's."""


def test_every_kind_of_alarm_has_a_case() -> None:
    kinds = {*health.TABLE, *alerts.TABLE}
    assert CASES.keys() == kinds, "raise a new kind above, and end its cause"


@pytest.mark.parametrize("code", CASES)
async def test_it_is_told_and_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    rule = alerts.TABLE.get(code)
    async with AsyncExitStack() as stack:
        desk = Desk(tmp_path, stack, monkeypatch)
        await desk.start()
        case = CASES[code](desk)
        await anext(case)
        desk.codes()
        desk.pass_s(0.0 if rule is None else rule.hold_s)
        assert code in desk.codes()
        assert code in desk.codes(), "it lasts as long as its cause does"
        counted = [line["code"] for line in ailments_of(status_of(desk.node), "self")]
        assert counted == ([code] if code in OWN_TROUBLE else [])
        await anext(case, None)
        desk.codes()
        desk.pass_s(GRACE_S if rule is None else max(GRACE_S, rule.clear_s))
        assert code not in desk.codes()
