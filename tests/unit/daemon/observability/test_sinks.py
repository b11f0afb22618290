"""Sinks that fail: begun again, after ever longer, until they have run well."""

import logging
from collections.abc import Callable

import pytest

from jupiterd.daemon.observability import sinks


class _Enough(BaseException):
    """Ends the test: no sink ends by itself."""


async def pauses_of(
    monkeypatch: pytest.MonkeyPatch, ran_s: list[float], fails: Callable[[], Exception]
) -> list[float]:
    """Return the pauses after runs of these lengths."""
    at_s, pauses, left = [0.0], list[float](), list(ran_s)

    async def run() -> None:
        if not left:
            raise _Enough
        at_s[0] += left.pop(0)
        raise fails()

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(sinks, "now_s", lambda: at_s[0])
    monkeypatch.setattr(sinks.asyncio, "sleep", sleep)
    with pytest.raises(_Enough):
        await sinks.run_forever("metrics", run)
    return pauses


async def test_a_sink_that_has_run_well_fails_for_the_first_time_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    ran_s = [1.0, 1.0, 1.0, sinks.WELL_S, 1.0]
    pauses = await pauses_of(monkeypatch, ran_s, lambda: OSError("no"))
    assert pauses == [5.0, 10.0, 20.0, 5.0, 10.0]
    told = [record.message for record in caplog.records]
    assert told == ["sink_failed"] * 2, "once for each series"


async def test_pauses_grow_no_longer_than_ten_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses = await pauses_of(monkeypatch, [1.0] * 12, lambda: ValueError("no"))
    assert max(pauses) == pauses[-1] == sinks.LONGEST_PAUSE_S
