"""What `--data` and `data prepare` take for text, and what they refuse."""

from pathlib import Path

import pytest

from jupiterd.ctl.data_source import source_arguments
from jupiterd.ctl.invocation import Invocation
from jupiterd.errors import NotFoundError


def test_the_data_of_a_round_is_refused_with_how_to_get_a_file_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotFoundError, match="a cycle's round was trained on") as caught:
        source_arguments(Invocation(), "bread/1")
    assert "jupiterctl data export bread/1 --to FILE" in caught.value.hint
