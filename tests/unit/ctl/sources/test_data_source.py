"""What `--data` and `data prepare` take for text, and what they refuse."""

from pathlib import Path

import pytest

from jupiterd.ctl.invocation import Invocation
from jupiterd.ctl.sources.data_source import source_arguments
from jupiterd.errors import NotFoundError


def test_the_data_of_a_round_is_refused_with_how_to_get_a_file_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotFoundError, match="a cycle's round was trained on") as caught:
        source_arguments(Invocation(), "bread/1")
    assert "jupiterctl data export bread/1 --to FILE" in caught.value.hint


def test_a_name_of_nothing_here_is_refused_with_all_that_can_be_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotFoundError, match="there is no folder or file nosuchset") as caught:
        source_arguments(Invocation(), "nosuchset")
    for named in ("a folder or file", "ORG/NAME of the hub", "jupiterctl data list"):
        assert named in caught.value.hint
