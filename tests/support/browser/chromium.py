"""A real Chromium without a window, for tests and pictures of pages.

Owns finding it, starting it with a profile of its own, and ending it. Doesn't know what it shows.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path

import pytest

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
END_S = 20.0
_LISTENS = re.compile(r"DevTools listening on (ws://\S+)")
_OPTIONS = (
    "--headless=new",
    "--no-sandbox",  # which root can't have; the pages are ours
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--remote-debugging-port=0",
    "about:blank",
)


def chromium_program() -> str | None:
    """Return where Chromium is; None: this machine has none."""
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


needs_chromium = pytest.mark.skipif(
    chromium_program() is None, reason="needs Chromium (apt-get install chromium)"
)


@contextmanager
def chromium(folder: Path) -> Generator[str]:
    """Run Chromium with its profile in `folder`; give the address of its DevTools."""
    program = chromium_program()
    assert program is not None
    options = (f"--user-data-dir={folder}", *_OPTIONS)
    running = subprocess.Popen(
        [program, *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"HOME": str(folder)},
    )
    assert running.stderr is not None
    try:
        yield _address(running.stderr)
    finally:
        running.terminate()
        running.communicate(timeout=END_S)


def _address(told: Iterable[str]) -> str:
    """Read what it tells until it says where it listens."""
    lines: list[str] = []
    for line in told:
        lines.append(line)
        if found := _LISTENS.search(line):
            return found[1]
    raise AssertionError("Chromium doesn't start: " + "".join(lines))
