"""Every reader of other machines' bytes, given thousands of odd ones; `make fuzz` gives more."""

import pytest

from tests.hostile.readers import KINDS, READERS, attempt

EACH = 100
IN_A_LONG_RUN = 100_000
"""Of all readers together."""


@pytest.mark.parametrize("name", READERS)
def test_odd_bytes_are_read_or_refused(name: str) -> None:
    for number in range(EACH):
        attempt(name, number)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_hundred_thousand_odd_inputs_are_read_or_refused(seed: int) -> None:
    for number in range(-(-IN_A_LONG_RUN // len(READERS))):
        for name in READERS:
            attempt(name, seed + number)


def test_messages_of_every_service_are_among_them() -> None:
    names = {kind.name for kind in KINDS}
    assert {"Heartbeat", "WorkRequest", "ScriptOrder", "FetchPiece"} <= names
