"""Models where people find them."""

from pathlib import Path

from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.daemon.artifacts.model_exports import ModelExports, _label
from jupiterd.ids import ArtifactId
from tests.support.cluster.building import CYCLE, NODES, started

MODEL, OTHER = ArtifactId("1" * 64), ArtifactId("2" * 64)


def cycle() -> CycleState:
    state = CycleState()
    state.apply(started(), (1, NODES[0], "u", 1))
    return state


def artifact(folder: Path, text: str = "weights") -> Path:
    (folder / "tokenizer").mkdir(parents=True)
    (folder / "model.safetensors").write_text(text)
    (folder / "tokenizer" / "tokenizer.json").write_text("{}")
    return folder


def test_a_round_s_model_is_a_plain_folder_named_for_people(tmp_path: Path) -> None:
    folder = ModelExports(tmp_path / "runs").export(
        cycle(), 2, MODEL, artifact(tmp_path / "artifact")
    )
    assert folder == tmp_path / "runs" / f"python-{CYCLE[:8]}" / "round-2"
    assert (folder / "model.safetensors").read_text() == "weights"
    assert (folder / "tokenizer" / "tokenizer.json").is_file()


def test_an_export_takes_no_room(tmp_path: Path) -> None:
    source = artifact(tmp_path / "artifact")
    folder = ModelExports(tmp_path / "runs").export(cycle(), 1, MODEL, source)
    assert (folder / "model.safetensors").samefile(source / "model.safetensors")


def test_an_export_stays_as_it_is_when_it_is_asked_for_again(tmp_path: Path) -> None:
    exports = ModelExports(tmp_path / "runs")
    first = exports.export(cycle(), 1, MODEL, artifact(tmp_path / "one"))
    assert exports.export(cycle(), 1, MODEL, artifact(tmp_path / "two", "others")) == first
    assert (first / "model.safetensors").read_text() == "weights"


def test_an_export_that_was_broken_off_is_made_anew(tmp_path: Path) -> None:
    exports = ModelExports(tmp_path / "runs")
    draft = exports.folder(cycle(), 1, MODEL).with_name("round-1.tmp")
    draft.mkdir(parents=True)
    (draft / "half").write_text("a file")
    folder = exports.export(cycle(), 1, MODEL, artifact(tmp_path / "artifact"))
    assert not (folder / "half").exists()
    assert not draft.exists()


def test_asking_where_a_model_would_lie_makes_nothing(tmp_path: Path) -> None:
    assert not ModelExports(tmp_path / "runs").folder(cycle(), 1, MODEL).exists()
    assert ModelExports(tmp_path / "runs").folder(CycleState(), 1, MODEL).parent.name == "unknown"


def test_a_model_of_another_line_has_a_folder_of_its_own(tmp_path: Path) -> None:
    exports = ModelExports(tmp_path / "runs")
    first = exports.export(cycle(), 1, MODEL, artifact(tmp_path / "one"))
    second = exports.export(cycle(), 1, OTHER, artifact(tmp_path / "two", "others"))
    assert (first.name, second.name) == ("round-1", "round-1-22222222")
    assert (second / "model.safetensors").read_text() == "others"
    assert exports.folder(cycle(), 1, MODEL) == first
    assert exports.folder(cycle(), 1, OTHER) == second


def test_a_label_that_cannot_be_read_is_of_another_model(tmp_path: Path) -> None:
    exports = ModelExports(tmp_path / "runs")
    first = exports.export(cycle(), 1, MODEL, artifact(tmp_path / "one"))
    _label(first).write_bytes(b"\xff\xfe")
    assert exports.folder(cycle(), 1, MODEL).name == f"round-1-{MODEL[:8]}"
    _label(first).unlink()
    _label(first).mkdir()
    assert exports.folder(cycle(), 1, MODEL).name == f"round-1-{MODEL[:8]}"
