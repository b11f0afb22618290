"""What holds for every test."""

import asyncio


def pytest_configure() -> None:
    # Or pytest-asyncio asks for "the current loop", gets one made for it, and never closes it:
    # a warning at the very end of the run, which counts as an error.
    asyncio.set_event_loop(None)
