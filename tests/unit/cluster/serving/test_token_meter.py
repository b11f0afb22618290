"""How fast answers are written, over the last seconds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cluster.serving.token_meter import WINDOW_S, TokenMeter, tokens_in


@pytest.mark.parametrize(
    ("chunk", "is_streamed", "tokens"),
    [
        (b'data: {"a": 1}\n\ndata: {"a": 2}\n\n', True, 2),
        (b"data: [DONE]\n\n", True, 0),
        (b'{"usage": {"completion_tokens": 17, "total_tokens": 20}}', False, 17),
        (b'{"usage":{"completion_tokens":"many"}}', False, 0),
        (b"", False, 0),
    ],
)
def test_an_answer_tells_how_many_tokens_it_has(
    chunk: bytes, *, is_streamed: bool, tokens: int
) -> None:
    assert tokens_in(chunk, is_streamed=is_streamed) == tokens


@given(st.integers(1, 200), st.floats(1.0, 60.0))
def test_an_even_stream_has_the_rate_at_which_it_comes(per_s: int, for_s: float) -> None:
    meter = TokenMeter()
    for number in range(int(per_s * for_s)):
        meter.note(number / per_s, 1)
    rate = meter.rate(for_s)
    assert rate is not None
    assert rate == pytest.approx(per_s, rel=0.05, abs=2.0)
    assert meter.total == int(per_s * for_s)


def test_what_it_last_wrote_is_kept_while_nothing_is_asked() -> None:
    meter = TokenMeter()
    for number in range(101):
        meter.note(number / 50, 1)
    busy = meter.rate(2.0)
    assert busy == pytest.approx(50, rel=0.05)
    assert meter.rate(2.0 + 10 * WINDOW_S) == busy


def test_of_what_never_wrote_nothing_is_known() -> None:
    meter = TokenMeter()
    assert meter.rate(0.0) is None
    meter.note(5.0, 1)
    assert meter.rate(5.1) is None  # nobody knows how long the first one took
