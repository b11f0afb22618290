"""Readers of documents that come from the test run's warm process."""

import os

import pytest

from jupiterd.workers.data.extract import extraction
from tests.support.fork_server import FOLDER_VARIABLE
from tests.support.warm_children import ReaderStarts


@pytest.fixture(autouse=True)
def _warm_readers(fork_server: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have what a test collects read by forks, not by processes that import their parsers first."""
    if FOLDER_VARIABLE in os.environ:
        monkeypatch.setattr(extraction, "subprocess", ReaderStarts)
