"""Each process of a run begins with modules of its own."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.reading import own_part, read

FILES = [Path(f"test_{number}.py") for number in range(10)]


@dataclass(frozen=True)
class Worker:
    """As much of the configuration as a process of several has."""

    workerinput: Mapping[str, str | int]


class Alone:
    """The configuration of a process that is the only one."""


def process(number: int, count: int) -> Any:
    return Worker({"workerid": f"gw{number}", "workercount": count})


def test_all_modules_are_begun_with_and_none_by_two() -> None:
    parts = [own_part(reversed(FILES), process(number, 3)) for number in range(3)]
    assert sorted(file for part in parts for file in part) == FILES
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_the_only_process_reads_as_it_collects() -> None:
    alone: Any = Alone()
    assert own_part(FILES, alone) == []


def test_what_cannot_be_read_or_is_skipped_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    texts = {
        "broken_of_reading": "1 / 0",
        "skipped_of_reading": "import pytest; pytest.skip('not here', allow_module_level=True)",
        "whole_of_reading": "",
    }
    files = [tmp_path / f"{name}.py" for name in texts]
    for file, text in zip(files, texts.values(), strict=True):
        file.write_text(text)
    read(files, tmp_path)
    assert sys.modules.keys() & texts == {"whole_of_reading"}
    del sys.modules["whole_of_reading"]
