"""What holds for every test."""

import asyncio
import gc
import os
import secrets
from zlib import crc32

import pytest
from hypothesis import HealthCheck, settings

SEED_VARIABLE = "JUPITER_TEST_SEED"

MAX_ID_LENGTH = 200
"""Of a parameter in the name of a test."""

# The same examples in every run, and no time limit for one of them: machines that test are busy.
settings.register_profile(
    "jupiter", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("jupiter")


def pytest_configure() -> None:
    # Or pytest-asyncio asks for "the current loop", gets one made for it, and never closes it:
    # a warning at the very end of the run, which counts as an error.
    asyncio.set_event_loop(None)


def pytest_collection_finish() -> None:
    # Thousands of tests are kept to the end: looking through them for garbage again and again takes
    # a tenth of the time. The dashboard collects as seldom.
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


def pytest_make_parametrize_id(val: object) -> str | None:
    """Give long texts a short name: pytest puts it in the environment of all that a test starts.

    The kernel takes no variable longer than 128 KiB, so whoever starts a process would fail.
    """
    if isinstance(val, bytes | str) and len(val) > MAX_ID_LENGTH:
        data = val.encode("utf-8", "surrogatepass") if isinstance(val, str) else val
        return f"{type(val).__name__}-{len(data)}-{crc32(data):08x}"
    return None


@pytest.fixture
def seed() -> int:
    """Return another seed each time, shown where a test fails; the variable has one used again."""
    seed = int(os.environ.get(SEED_VARIABLE) or secrets.randbelow(1 << 32))
    print(f"{SEED_VARIABLE}={seed}")
    return seed
