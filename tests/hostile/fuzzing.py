"""Many odd inputs for one parser, the same ones in every run unless more are asked for.

Owns how many there are: JUPITER_FUZZ_EXAMPLES=20000 gives every test so many new ones, and a
failure prints what has Hypothesis try that one again.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st

EXAMPLES_VARIABLE = "JUPITER_FUZZ_EXAMPLES"
TIMEOUT_S = 30.0
"""For one input; a parser that needs longer hangs."""

Value = TypeVar("Value")


def examples(count: int) -> Any:
    """Return the decorator that sets how many inputs a test tries."""
    wanted = os.environ.get(EXAMPLES_VARIABLE)
    return settings(
        max_examples=int(wanted) if wanted else count,
        derandomize=not wanted,
        print_blob=True,
        database=None,
    )


async def fuzz(
    count: int, inputs: st.SearchStrategy[Value], attempt: Callable[[Value], Awaitable[None]]
) -> None:
    """Try so many inputs one after another, in this loop."""
    loop = asyncio.get_running_loop()

    @examples(count)
    @given(inputs)
    def each(value: Value) -> None:
        async def one() -> None:
            async with asyncio.timeout(TIMEOUT_S):
                await attempt(value)

        asyncio.run_coroutine_threadsafe(one(), loop).result()

    await asyncio.to_thread(each)


def damaged(good: bytes) -> st.SearchStrategy[bytes]:
    """Return bytes that begin to make sense: cut, with bytes changed, or with more behind them."""
    places = st.lists(st.tuples(st.integers(0, len(good) - 1), st.integers(0, 255)), max_size=8)
    return st.builds(_damage, st.just(good), places, st.integers(0, len(good)), st.binary())


def _damage(good: bytes, places: list[tuple[int, int]], length: int, more: bytes) -> bytes:
    out = bytearray(good)
    for place, value in places:
        out[place] = value
    return bytes(out[: length or len(good)]) + more


odd_text = st.one_of(
    st.text(max_size=200),
    st.sampled_from(
        ["\x1b[2J", "a\0b", "../../etc", "\u202egnp", "\r\n", "%s%n", "9" * 5000, "[::1"]
    ),
)
