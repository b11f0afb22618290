"""Paths as text that travels, whatever bytes their names are made of."""

import os
from pathlib import Path

import pytest

from jupiterd.path_text import path_of, path_text


@pytest.mark.parametrize("name", [b"plain", "caf\u00e9".encode(), b"caf\xe9", b"a\xff\x80\xe9 b"])
def test_a_path_is_the_same_again_after_it_has_travelled(tmp_path: Path, name: bytes) -> None:
    folder = tmp_path / os.fsdecode(name)
    folder.mkdir()
    told = path_text(folder)
    told.encode("utf-8")
    assert path_of(told) == folder


def test_a_name_that_only_looks_escaped_is_taken_as_it_is(tmp_path: Path) -> None:
    (tmp_path / r"caf\xe9").mkdir()
    (tmp_path / os.fsdecode(b"caf\xe9")).mkdir()
    assert path_of(str(tmp_path / r"caf\xe9")) == tmp_path / r"caf\xe9"


def test_a_home_folder_may_be_meant() -> None:
    assert path_of("~/texts") == Path.home() / "texts"
    assert path_of("~nobody-here/texts") == Path("~nobody-here/texts")
