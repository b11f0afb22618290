"""What lies on a circle of imports, and what is said of it."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "import_circles.py"))


def graph_of(folder: Path, **texts: str) -> dict[str, set[str]]:
    (folder / "house" / "room").mkdir(parents=True)
    (folder / "house" / "__init__.py").touch()
    (folder / "house" / "room" / "__init__.py").touch()
    for name, text in texts.items():
        path = folder.joinpath("house", *name.split("__")).with_suffix(".py")
        path.write_text(text)
    return SCRIPT["graph_of"](folder, ("house",))


@pytest.mark.parametrize(
    "back",
    [
        "from house.a import thing",
        "import house.a",
        "from house import a",
        "def late():\n    from house.a import thing",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from house.a import Thing",
    ],
    ids=["a name", "a module", "out of its package", "in a function", "for types"],
)
def test_every_kind_of_import_closes_a_circle(tmp_path: Path, back: str):
    graph = graph_of(tmp_path, a="from house.room.b import thing", room__b=back)
    assert SCRIPT["circles"](graph) == [["house.a", "house.room.b"]]


def test_what_only_leads_to_circles_or_away_from_them_is_on_none(tmp_path: Path):
    graph = graph_of(
        tmp_path,
        top="import house.a, house.d",
        a="import house.b",
        b="import house.a, house.between",
        between="import house.c",
        c="import house.d",
        d="import house.c, house.end",
        end="import os",
    )
    assert SCRIPT["circles"](graph) == [["house.a", "house.b"], ["house.c", "house.d"]]


def test_a_circle_is_told_by_its_shortest_way_and_its_modules(tmp_path: Path):
    graph = graph_of(tmp_path, a="import house.b", b="import house.c", c="import house.b, house.a")
    assert list(SCRIPT["complaints"](graph, set())) == [
        "circle of 3 modules: house.b -> house.c -> house.b\n  house.a\n  house.b\n  house.c"
    ]
    assert list(SCRIPT["complaints"](graph, {"house.a", "house.b", "house.c"})) == []


def test_who_is_known_and_on_no_circle_any_more_is_named(tmp_path: Path):
    graph = graph_of(tmp_path, a="import house.b", b="")
    assert list(SCRIPT["complaints"](graph, {"house.a"})) == [
        "house.a lies on no circle: take it from KNOWN in scripts/import_circles.py"
    ]


def test_a_package_that_imports_its_module_is_on_the_circle(tmp_path: Path):
    graph = graph_of(tmp_path, a="from house import thing")
    (tmp_path / "house" / "__init__.py").write_text("from house.a import thing")
    assert SCRIPT["circles"](SCRIPT["graph_of"](tmp_path, ("house",))) == [["house", "house.a"]]
    assert SCRIPT["circles"](graph) == []
