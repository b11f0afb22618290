"""What becomes of each rank's answer; that ranks really add up is shown end to end."""

import asyncio

from jupiterd.cycle.base.work_item import WorkResult
from jupiterd.daemon.scripts.allreduce_check import _answered
from jupiterd.errors import BadRouteError, JupiterError, PeerUnreachableError, WorkFailedError

ROW = {"node": "11", "name": "one", "rank": 0, "result": "", "note": ""}


async def answered(outcome: WorkResult | JupiterError | None) -> tuple[str, str]:
    rank: asyncio.Future[WorkResult] = asyncio.get_running_loop().create_future()
    if outcome is None:
        rank.cancel()
    elif isinstance(outcome, JupiterError):
        rank.set_exception(outcome)
    else:
        rank.set_result(outcome)
    row = _answered(ROW, rank)
    return str(row["result"]), str(row["note"])


def result(is_right: float) -> WorkResult:
    counts = {"is_right": is_right, "time_ms": 1.0, "mbit_per_s": 900.0}
    return WorkResult({}, counts, {"device": "cpu"})


async def test_each_answer_has_a_word_and_a_reason():
    assert await answered(result(1.0)) == ("ok", "")
    assert await answered(result(0.0)) == ("wrong", "the sum isn't what the ranks had")
    assert await answered(PeerUnreachableError("gone")) == ("unreachable", "gone")
    assert await answered(BadRouteError("eth0 can't")) == ("unreachable", "eth0 can't")
    assert await answered(WorkFailedError("it died")) == ("failed", "it died")
    assert await answered(None) == ("failed", "another rank failed")
