"""Islands in one line of text, by ids and by the names that people use."""

import pytest

from jupiterd.cluster.planning.island_nodes import meant, read, written
from jupiterd.cluster.planning.layouts import Island
from jupiterd.errors import NotFoundError, UsageError
from jupiterd.ids import NodeId

A, B, C = (NodeId(letter * 32) for letter in "abc")
NAMES = {A: "mini", B: "studio", C: "box"}


def test_islands_are_read_as_they_were_written() -> None:
    islands = (Island.of("mlx", [B, A]), Island.of("torch", [C]))
    assert read(written(islands)) == islands
    assert read("") == ()


def test_people_name_islands_by_engine_and_nodes() -> None:
    found = meant("mlx:mini,studio torch:box", NAMES)
    assert found == (Island.of("mlx", [A, B]), Island.of("torch", [C]))


@pytest.mark.parametrize(
    ("text", "told"),
    [("mlx:mini", "one island"), ("mlx:mini torch:mini,box", "names mini twice")],
)
def test_what_makes_no_islands_is_refused(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        meant(text, NAMES)


def test_a_name_that_nobody_has_is_refused() -> None:
    with pytest.raises(NotFoundError, match="no node is called nas"):
        meant("mlx:mini torch:nas", NAMES)
