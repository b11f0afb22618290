"""A cluster file: what may stand in it, and how a mistake is told."""

from pathlib import Path

import pytest

from jupiterd.cluster.planning.cluster_file_policy import ClusterFile
from jupiterd.cycle.base.yaml_text import MAX_TEXT_BYTES
from jupiterd.daemon.runtime.cluster_file import WrittenCluster, WrittenNode, read_cluster_file
from jupiterd.daemon.runtime.settings import load_settings
from jupiterd.errors import ExitCode, InvalidClusterFileError
from jupiterd.ports import Address

EXAMPLE = Path(__file__).parents[4] / "config" / "cluster.example.yaml"

BOMB = "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nnodes: [*c, *c]\n"


def file_of(folder: Path, text: str) -> Path:
    path = folder / "cluster.yaml"
    path.write_text(text)
    return path


def mistake(folder: Path, text: str) -> str:
    path = file_of(folder, text)
    with pytest.raises(InvalidClusterFileError) as refused:
        read_cluster_file(path)
    error = refused.value
    assert (error.exit_code, error.hint) == (
        ExitCode.USAGE, "config/cluster.example.yaml shows every key",
    )  # fmt: skip
    assert "\n" not in error.message
    return error.message.removeprefix(str(path))


def test_the_example_parses_and_shows_every_key() -> None:
    text = EXAMPLE.read_text()
    written = read_cluster_file(EXAMPLE)
    assert [entry.address for entry in written.entries] == [
        "192.168.1.20:47470", "192.168.1.21:47470", "old-laptop.local:47470",
    ]  # fmt: skip
    for key in (*WrittenCluster.model_fields, *WrittenNode.model_fields):
        assert f"{key}:" in text, key
    for words in (("generator", "trainer", "hybrid"), ("mac", "nvidia", "cpu")):
        assert all(word in text for word in words)


def test_each_key_is_explained_above_its_first_use() -> None:
    lines = EXAMPLE.read_text().splitlines()
    for key in (*WrittenCluster.model_fields, *WrittenNode.model_fields):
        first = next(n for n, line in enumerate(lines) if line.strip(" -").startswith(f"{key}:"))
        assert lines[first - 1].lstrip().startswith("#"), key


def test_every_value_is_kept_with_its_line(tmp_path: Path) -> None:
    path = file_of(tmp_path, "# mine\nbackend: mpi\nnodes:\n  - name: lap\n    memory_gb: 16\n")
    written = read_cluster_file(path)
    (entry,) = written.entries
    assert (written.backend, entry.name, entry.memory_gb) == ("mpi", "lap", 16)
    assert written.place("backend") == f"{path}:2"
    assert written.place("memory_gb", entry) == f"{path}:5"


@pytest.mark.parametrize("text", ["", "# nothing\n\n  # at all\n", "{}\n", "nodes: []\n"])
def test_a_file_that_says_nothing_is_right(tmp_path: Path, text: str) -> None:
    written = read_cluster_file(file_of(tmp_path, text))
    assert (written.backend, written.entries) == ("auto", ())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "backend: gloo\n",
            ":1: backend: expected one of 'auto', 'islands', 'mpi', 'torch', 'mlx'",
        ),
        ("sync_every: 0\n", ":1: sync_every: expected a whole number from 1 to 100000, got 0"),
        ("nodes:\n  - name: a\n    colour: red\n", ":3: nodes.0.colour: expected one of the keys"),
        ("nodes:\n  - role: trainer\n", ":2: nodes.0: expected host or name, got neither"),
        ("nodes:\n  - host: a:0\n", ":2: nodes.0.host: expected HOST, HOST:PORT or [IPv6]:PORT"),
        ("nodes:\n  - host: ''\n", ":2: nodes.0.host: expected HOST, HOST:PORT or [IPv6]:PORT"),
        ("nodes:\n  - name: 12\n", ":2: nodes.0.name: expected text of 1 to 64 characters, got 12"),
        ("nodes:\n  - name: a\n    role: idle\n", ":3: nodes.0.role: expected one of 'generator',"),
        (
            "nodes:\n  - name: a\n    memory_gb: .nan\n",
            ":3: nodes.0.memory_gb: expected a number from 0.25 to 1048576, got a number that",
        ),
        (
            "nodes:\n  - host: a\n  - host: A:47470\n",
            ":1: nodes: expected a different host for each, got 'a:47470' twice",
        ),
        (
            "nodes:\n  - {name: a, host: b}\n  - {name: a, host: c}\n",
            ":1: nodes: expected a different name for each, got 'a' twice",
        ),
        ("backend: torch\nbackend: mlx\n", ":2: backend: expected each key once"),
        ("nodes: [\n", ":2: expected valid YAML"),
        ("- name: a\n", ":1: expected lines of the form `key: value`"),
        (BOMB, ":1: expected plain values, got an anchor or alias (& or *)"),
        ("nodes: " + "[" * 40 + "]" * 40 + "\n", ":1: expected at most 16 levels of nesting"),
        (
            "nodes:\n" + "".join(f"  - name: n{number}\n" for number in range(65)),
            ":1: nodes: expected a list of 0 to 64, got a list of 65",
        ),
        ("backend: gloo\nsync_every: many\n", "'gloo' (and 1 more)"),
    ],
)
def test_a_mistake_is_told_with_its_line_and_what_was_expected(
    tmp_path: Path, text: str, told: str
) -> None:
    found = mistake(tmp_path, text)
    assert told in found if told.endswith("more)") else found.startswith(told), found


@pytest.mark.parametrize("text", ["# x\na: " + "x" * MAX_TEXT_BYTES, "# x\n" * MAX_TEXT_BYTES])
def test_a_file_that_is_too_large_is_refused_without_reading_all_of_it(
    tmp_path: Path, text: str
) -> None:
    assert "expected at most 256 KiB" in mistake(tmp_path, text)


@pytest.mark.parametrize("content", [b"\xff\xfe", b"backend: \x00"])
def test_what_is_no_text_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_bytes(content)
    with pytest.raises(InvalidClusterFileError, match=str(path)):
        read_cluster_file(path)


def test_each_host_is_a_peer_beside_those_that_are_named(tmp_path: Path) -> None:
    path = file_of(tmp_path, "nodes:\n  - host: One\n  - host: two:99\n  - name: lap\n")
    settings, sources = load_settings({"cluster": path, "peer": ("one", "three")}, {}, None)
    assert settings.peer_addresses() == (
        Address("one", 47470), Address("three", 47470), Address("two", 99),
    )  # fmt: skip
    assert sources["cluster"] == "flag"


def test_the_file_in_the_state_folder_counts_where_no_other_is_named(tmp_path: Path) -> None:
    kept = file_of(tmp_path, "backend: torch\n")
    settings, sources = load_settings({"state_dir": tmp_path}, {}, None)
    assert (settings.cluster.backend, sources["cluster"]) == ("torch", str(kept))
    other = tmp_path / "other.yaml"
    other.write_text("backend: mlx\n")
    settings, _ = load_settings({"state_dir": tmp_path}, {"JUPITER_CLUSTER": str(other)}, None)
    assert settings.cluster.backend == "mlx"
    kept.unlink()
    settings, _ = load_settings({"state_dir": tmp_path}, {}, None)
    assert settings.cluster == ClusterFile()


def test_one_in_config_below_the_folder_of_the_start_counts_where_the_state_folder_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").mkdir()
    lying = file_of(tmp_path / "config", "backend: mlx\n")
    monkeypatch.chdir(tmp_path)
    settings, sources = load_settings({"state_dir": tmp_path / "state"}, {}, None)
    assert (settings.cluster.backend, sources["cluster"]) == ("mlx", str(lying))
    (tmp_path / "state").mkdir()
    kept = file_of(tmp_path / "state", "backend: torch\n")
    settings, sources = load_settings({"state_dir": tmp_path / "state"}, {}, None)
    assert (settings.cluster.backend, sources["cluster"]) == ("torch", str(kept))


def test_a_broken_one_in_the_state_folder_is_no_less_a_mistake(tmp_path: Path) -> None:
    kept = file_of(tmp_path, "backend: gloo\n")
    with pytest.raises(InvalidClusterFileError, match=f"{kept}:1: backend"):
        load_settings({"state_dir": tmp_path}, {}, None)


def test_one_that_is_named_and_not_there_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(InvalidClusterFileError, match=r"gone\.yaml can't be read: No such file"):
        load_settings({"cluster": str(tmp_path / "gone.yaml")}, {}, None)


def test_jupiter_yaml_may_name_it(tmp_path: Path) -> None:
    config = tmp_path / "jupiter.yaml"
    config.write_text(f"cluster: {file_of(tmp_path, 'backend: mlx')}\n")
    settings, sources = load_settings({}, {}, config)
    assert (settings.cluster.backend, sources["cluster"]) == ("mlx", str(config))
    config.write_text("cluster: gone.yaml\n")
    with pytest.raises(InvalidClusterFileError, match=r"gone\.yaml can't be read"):
        load_settings({}, {}, config)
