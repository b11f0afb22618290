"""An adapter's folder that is used as a model: with its base, found or named, in one folder."""

from pathlib import Path

import pytest

from jupiterd.adapter_folder import base_beside
from jupiterd.ctl.sources import adapter_model, adapter_source
from jupiterd.ctl.sources.adapter_base import weights_hash
from jupiterd.ctl.sources.adapter_model import usable_model, usable_models
from jupiterd.errors import JupiterError, NotFoundError, UsageError
from tests.unit.ctl.sources.test_adapter_source import adapter_in, base_in, exported_in


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return base_in(tmp_path / "base")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    (tmp_path / "state").mkdir()
    return tmp_path / "state"


def refused(
    text: Path, named: str | None, state: Path, kind: type[JupiterError] = UsageError
) -> JupiterError:
    with pytest.raises(kind) as caught:
        usable_model(str(text), named, state)
    assert "\n" not in caught.value.message
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize("named", ["../base", ""])
def test_it_has_a_folder_of_links_to_both_that_stays_as_long_as_they_do(
    base: Path, state: Path, tmp_path: Path, named: str
) -> None:
    theirs = adapter_in(tmp_path / "theirs", named)
    said = None if named else str(base)
    found = Path(usable_model(str(theirs), said, state))
    assert found.name == "theirs", "as clients of an endpoint call it"
    assert base_beside(found) == base
    assert (found / "config.json").read_text() == (base / "config.json").read_text()
    assert {path.name for path in found.iterdir()} == {
        "adapter_config.json", "adapter_model.safetensors", "base", "config.json",
    }  # fmt: skip
    before = found.stat().st_ino
    assert usable_model(str(theirs), said, state) == str(found)
    assert found.stat().st_ino == before, "whoever reads it just now isn't disturbed"
    (theirs / "chat_template.jinja").write_text("{{ messages }}")
    assert (Path(usable_model(str(theirs), said, state)) / "chat_template.jinja").is_file()
    assert [path.name for path in found.parent.iterdir()] == ["theirs"]


def test_a_folder_without_a_slash_is_one_too(
    base: Path, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter_in(tmp_path / "theirs", str(base))
    monkeypatch.chdir(tmp_path)
    assert base_beside(Path(usable_model("theirs", None, state))) == base


def test_models_and_names_stay_as_they_are(base: Path, state: Path) -> None:
    assert usable_model("python/2", None, state) == "python/2"
    assert usable_model(str(base), None, state) == str(base)
    with pytest.raises(UsageError, match="no such folder is named"):
        usable_models("python/2", "", str(base), state)


def test_a_base_that_the_cluster_knows_by_its_content_or_by_a_name_is_asked_for(
    base: Path, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def of_cluster(named: str, _: Path) -> str:
        asked.append(named)
        return str(base)

    monkeypatch.setattr(adapter_model, "of_cluster", of_cluster)
    monkeypatch.setattr(adapter_source, "of_cluster", of_cluster)
    ours = adapter_in(tmp_path / "ours", "f" * 64)
    assert base_beside(Path(usable_model(str(ours), None, state))) == base
    theirs = adapter_in(tmp_path / "theirs", "nobody/knows")
    assert base_beside(Path(usable_model(str(theirs), "python/base", state))) == base
    assert asked == ["f" * 64, "python/base"]


def test_a_model_of_the_hub_is_taken_from_this_disk_and_never_fetched(
    base: Path, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(cache))
    theirs = adapter_in(tmp_path / "theirs", "some/model")
    error = refused(theirs, None, state, NotFoundError)
    assert "is for some/model, which isn't known here" in error.message
    assert "--base FOLDER" in error.hint
    place = cache / "models--some--model"
    (place / "refs").mkdir(parents=True)
    (place / "refs" / "main").write_text("a" * 40)
    (place / "snapshots").mkdir()
    base.rename(place / "snapshots" / ("a" * 40))
    found = base_beside(Path(usable_model(str(theirs), None, state)))
    assert found == place / "snapshots" / ("a" * 40)


def test_what_can_not_be_is_said_in_a_line(base: Path, state: Path, tmp_path: Path) -> None:
    nameless = adapter_in(tmp_path / "nameless")
    assert "doesn't say which model it is for" in refused(nameless, None, state).message
    wider = base_in(tmp_path / "wider", hidden_size=8)
    error = refused(nameless, str(wider), state)
    assert "can't be used: it is for another base" in error.message
    assert "--base" in error.hint
    assert "no folder" in refused(nameless, "./gone", state, NotFoundError).message
    odd = adapter_in(tmp_path / "odd", str(base), bias="all")
    assert f"the adapter {odd} can't be used: its bias" in refused(odd, None, state).message
    biased = adapter_in(tmp_path / "unknown", "f" * 64)
    assert "isn't known here" in refused(biased, None, state, NotFoundError).message


def test_beside_base_its_own_base_answers(base: Path, state: Path, tmp_path: Path) -> None:
    theirs = adapter_in(tmp_path / "theirs", str(base))
    joined, beside = usable_models(str(theirs), "base", None, state)
    assert (base_beside(Path(joined)), beside) == (base, str(base))


def test_the_base_of_an_export_is_asked_for_by_its_id_first(
    base: Path, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def of_cluster(named: str, _: Path) -> str:
        asked.append(named)
        return str(base)

    monkeypatch.setattr(adapter_source, "of_cluster", of_cluster)
    ours = exported_in(tmp_path / "ours", base, name="base")
    assert base_beside(Path(usable_model(str(ours), None, state))) == base
    assert asked == ["d" * 64], "`base` means another model here"


def test_without_a_daemon_it_is_the_folder_beside_it_or_the_one_that_is_named(
    base: Path, state: Path, tmp_path: Path
) -> None:
    ours = exported_in(tmp_path / "ours", base, name="base")
    assert base_beside(Path(usable_model(str(ours), None, state))) == base
    base.rename(tmp_path / "moved")
    error = refused(ours, None, state, NotFoundError)
    assert error.message == f"{ours} is for base (dddddddd), which isn't known here"
    assert error.hint == "--base FOLDER names it"
    named = Path(usable_model(str(ours), str(tmp_path / "moved"), state))
    assert base_beside(named) == tmp_path / "moved"


def test_another_base_of_equal_shapes_is_refused_by_its_weights(
    base: Path, state: Path, tmp_path: Path
) -> None:
    ours = exported_in(tmp_path / "ours", base, name="mine")
    other = base_in(tmp_path / "other", ones=2.0)
    assert weights_hash(other) != weights_hash(base)
    error = refused(ours, str(other), state)
    assert "it was trained beside other weights than those of" in error.message
    assert "it is mine, dddddddd where it was trained" in error.hint
    theirs = adapter_in(tmp_path / "theirs", "some/model")
    assert usable_model(str(theirs), str(other), state), "peft writes no hash"


@pytest.mark.parametrize("named", ["base", "promoted"])
def test_a_stranger_s_base_is_no_cycle_s(
    base: Path, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    monkeypatch.setattr(adapter_source, "of_cluster", lambda *_: str(base))
    (tmp_path / "elsewhere").mkdir()
    theirs = adapter_in(tmp_path / "elsewhere" / "theirs", named)
    assert f"is for {named}" in refused(theirs, None, state, NotFoundError).message
