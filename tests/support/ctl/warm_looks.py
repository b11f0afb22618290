"""The looks at text that jupiterctl takes before a start, forked from the run's warm process."""

import os

import pytest

from jupiterd.ctl.preflight import source_survey
from tests.support.fork_server import FOLDER_VARIABLE
from tests.support.warm_children import LookStarts


@pytest.fixture
def warm_looks(fork_server: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the looks of a test begin warm."""
    if FOLDER_VARIABLE in os.environ:
        monkeypatch.setattr(source_survey, "subprocess", LookStarts)
