"""What holds for every test."""

import asyncio
import gc
import os
import secrets
import sys
from collections.abc import Iterator
from zlib import crc32

import pytest
from hypothesis import HealthCheck, settings

from tests.support.fork_server import FOLDER_VARIABLE, open_fork_server

SEED_VARIABLE = "JUPITER_TEST_SEED"

COLD_VARIABLE = "JUPITER_TEST_COLD"
"""Has daemons start their workers as on people's machines, without the fork server."""

WITH_DAEMONS = ("e2e", "network")
"""The folders of tests each of which starts daemons, of which a few are enough in `make test`."""

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


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave tests with real daemons to `make test-all`, but for those of the smoke test."""
    for item in items:
        if item.path.parent.name in WITH_DAEMONS and item.get_closest_marker("smoke") is None:
            item.add_marker(pytest.mark.full)


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


@pytest.fixture(scope="session")
def fork_server() -> Iterator[None]:
    """Let the daemons that tests start get their workers from processes that are warm already."""
    if sys.platform != "linux" or os.environ.get(COLD_VARIABLE):
        yield
        return
    with open_fork_server() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv(FOLDER_VARIABLE, str(folder))
        yield
