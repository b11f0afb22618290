"""A model of the hub is found by its name, refused early, and fetched whole: by the library."""

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest

from jupiterd.ctl.hub import fetches as fetching
from jupiterd.ctl.hub.asking import check_library
from jupiterd.ctl.hub.fetch_progress import FetchProgress
from jupiterd.ctl.hub.fetches import Fetches
from jupiterd.ctl.hub.names import HubName, hub_name
from jupiterd.ctl.hub.patience import patiently
from jupiterd.ctl.output.console import Console
from jupiterd.ctl.sources.model_source import model_arguments
from jupiterd.errors import (
    CorruptArtifactError,
    DiskFullError,
    JupiterError,
    NotFoundError,
    SourceUnreachableError,
)
from tests.support.ctl.tiny_models import INDEX, NAME, NO_MODELS, SHARDS, whole
from tests.support.sources.model_hub import HubFolder, ModelHub
from tests.unit.ctl.hub.conftest import point_library_at

pytestmark = pytest.mark.net

READ = {"config.json", *SHARDS, INDEX, "tokenizer.json", "tokenizer_config.json"}


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("team/prose", HubName("team/prose")),
        ("team/prose-1.5B@v2", HubName("team/prose-1.5B", "v2")),
        ("team/prose@refs/pr/1", HubName("team/prose", "refs/pr/1")),
        ("https://huggingface.co/team/prose", HubName("team/prose")),
        ("https://huggingface.co/team/prose/tree/v2/", HubName("team/prose", "v2")),
        ("https://hf.co/team/prose", HubName("team/prose")),
        ("./team/prose", None),
        ("/team/prose", None),
        ("a/b/c", None),
        ("1m", None),
        ("https://example.org/team/prose", None),
    ],
)
def test_a_model_of_the_hub_is_told_from_a_path(text: str, meant: HubName | None):
    assert hub_name(text) == meant


def fetched(text: str, tmp_path: Path) -> Path:
    """Return the folder of a model, fetched as a command would."""
    fetches = Fetches()
    asked = model_arguments(text, fetches)
    fetches.check_room(tmp_path)
    fetches.run(FetchProgress(Console(), tmp_path / "no-daemon"))
    return Path(asked["weights_folder"])


def test_the_configuration_comes_first_and_the_weights_once_without_pickles_and_programs(
    hub: ModelHub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    hub.models[NAME] = HubFolder(whole())
    fetches = Fetches()
    asked = model_arguments(NAME, fetches)
    assert (asked["model"], asked["config"]) == ("prose", whole()["config.json"].decode())
    assert hub.sent == 0, "no weights were asked for"
    (line,) = fetches.lines()
    assert line.startswith("would fetch 1.2 MiB of team/prose (commit ")
    folder = fetched(NAME, tmp_path)
    assert str(folder) == asked["weights_folder"]
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        name: data for name, data in whole().items() if name in READ
    }
    assert "team/prose is here: 1.2 MiB, fetched in " in capsys.readouterr().err
    hub.asked.clear()
    again = Fetches()
    assert model_arguments(f"{NAME}@main", again) == asked
    assert not again
    assert not [line for line in hub.asked if line.startswith("GET") and "/api/" not in line]


def test_a_fetch_that_was_ended_goes_on_where_it_was(
    hub: ModelHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    hub.models[NAME] = HubFolder(whole())
    fetches = Fetches()
    model_arguments(NAME, fetches)
    total = fetches.missing_bytes

    def end_at_half(_progress: object, model: object) -> None:
        if model.done > total // 2:  # type: ignore[attr-defined]
            raise KeyboardInterrupt

    progress = FetchProgress(Console(), tmp_path / "no-daemon")
    with monkeypatch.context() as ending:
        ending.setattr(FetchProgress, "show", end_at_half)
        with pytest.raises(KeyboardInterrupt):
            fetches.run(progress)
    left = fetches.missing_bytes
    assert total // 4 < left < 3 * total // 4
    hub.asked.clear()
    hub.sent = 0
    assert (fetched(NAME, tmp_path) / SHARDS[1]).read_bytes() == whole()[SHARDS[1]]
    assert hub.sent < total * 3 // 4
    assert any(line.startswith("GET /large/") and line.endswith("-") for line in hub.asked)


def test_a_connection_that_is_cut_is_made_again(hub: ModelHub, tmp_path: Path):
    hub.models[NAME] = HubFolder(whole())
    hub.cut_after = [len(whole()[SHARDS[0]]), 5 << 16]
    assert (fetched(NAME, tmp_path) / SHARDS[1]).read_bytes() == whole()[SHARDS[1]]
    assert len([line for line in hub.asked if line.endswith(f" {5 << 16}-")]) == 1


def test_what_comes_is_compared_with_what_the_hub_says_of_it(hub: ModelHub, tmp_path: Path):
    hub.models[NAME] = HubFolder(whole())
    hub.spoilt = True
    with pytest.raises(CorruptArtifactError, match=f"{SHARDS[0]} of {NAME} isn't what the hub"):
        fetched(NAME, tmp_path)
    hub.spoilt = False
    assert (fetched(NAME, tmp_path) / SHARDS[0]).read_bytes() == whole()[SHARDS[0]]


def test_a_token_is_shown_to_the_hub_alone(
    hub: ModelHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    hub.models[NAME] = HubFolder(whole(), status=401, code="GatedRepo", token="hf_mine")
    with pytest.raises(JupiterError) as caught:
        fetched(NAME, tmp_path)
    assert "hf auth login" in caught.value.hint
    monkeypatch.setenv("HF_TOKEN", "hf_mine")
    assert (fetched(NAME, tmp_path) / SHARDS[0]).is_file()
    assert hub.shown == []


def test_a_mirror_without_encryption_is_shown_no_token(monkeypatch: pytest.MonkeyPatch):
    constants = pytest.importorskip("huggingface_hub.constants")
    from huggingface_hub.utils import build_hf_headers

    monkeypatch.setattr(constants, "HF_HUB_DISABLE_IMPLICIT_TOKEN", False)
    monkeypatch.setenv("HF_TOKEN", "hf_mine")
    shown: dict[str, bool] = {}
    for endpoint in ("https://huggingface.co", "http://127.0.0.1:1", "http://mirror.example"):
        monkeypatch.setattr(constants, "ENDPOINT", endpoint)
        check_library()
        shown[endpoint] = "authorization" in build_hf_headers()
    assert list(shown.values()) == [True, True, False]


@pytest.mark.parametrize("name", NO_MODELS)
def test_what_cannot_be_trained_is_refused_in_a_line_before_it_is_fetched(hub: ModelHub, name: str):
    hub.models[NAME], says = NO_MODELS[name]
    with pytest.raises(JupiterError) as caught:
        model_arguments(NAME, Fetches())
    assert says in caught.value.message
    assert "\n" not in caught.value.message
    assert caught.value.hint
    assert hub.sent == 0


def test_a_name_or_revision_that_nobody_has_is_told(hub: ModelHub):
    hub.models[NAME] = HubFolder(whole(), revisions=("main", "v2"))
    assert "weights_folder" in model_arguments(f"{NAME}@v2", Fetches())
    with pytest.raises(NotFoundError, match="has no revision v3"):
        model_arguments(f"{NAME}@v3", Fetches())
    with pytest.raises(NotFoundError, match="neither a folder team/other on this machine"):
        model_arguments("team/other", Fetches())


def test_a_hub_that_is_asked_too_often_is_asked_again_when_it_says(hub: ModelHub):
    hub.models[NAME], hub.too_often = HubFolder(whole()), 3
    assert "weights_folder" in model_arguments(NAME, Fetches())


@dataclass(frozen=True)
class _Response:
    """What the library says of the hub's response."""

    headers: Mapping[str, str]
    status_code: int = 429


class _TooOftenError(Exception):
    def __init__(self, after: str) -> None:
        super().__init__(after)
        self.response = _Response({"Retry-After": after} if after else {})


@pytest.mark.parametrize(
    ("after", "waits"), [("30", [30, 30, 30]), ("50", [50, 50]), ("", [10, 10, 10]), ("900", [])]
)
def test_no_hub_is_waited_for_longer_than_two_minutes(after: str, waits: list[int]):
    slept: list[float] = []
    told: list[str] = []

    def ask() -> None:
        raise _TooOftenError(after)

    with pytest.raises(_TooOftenError):
        patiently(ask, told.append, slept.append)
    assert slept == waits
    assert [line.endswith(f"in {wait} s") for line, wait in zip(told, waits, strict=True)] == (
        [True] * len(waits)
    )


def test_a_hub_that_is_asked_too_often_says_when_to_come_back(hub: ModelHub):
    hub.models[NAME], hub.too_often = HubFolder(whole()), 100
    with pytest.raises(SourceUnreachableError, match="asked too often") as caught:
        model_arguments(NAME, Fetches())
    assert "try again in 0 s" in caught.value.hint


def test_without_the_hub_the_cache_has_to_do(
    hub: ModelHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    from huggingface_hub import constants

    hub.models[NAME] = HubFolder(whole())
    fetches = Fetches()
    folder = Path(model_arguments(NAME, fetches)["weights_folder"])
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(SourceUnreachableError, match="HF_HUB_OFFLINE forbids") as caught:
        model_arguments(NAME, Fetches())
    assert caught.value.hint.endswith("hf download team/prose")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    fetched(NAME, tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"http://127.0.0.1:{closed.getsockname()[1]}"
    for offline in (True, False):
        point_library_at(address, tmp_path / "cache", monkeypatch)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", offline)
        assert Path(model_arguments(NAME, Fetches())["weights_folder"]) == folder
    with pytest.raises(SourceUnreachableError, match="the hub can't be asked"):
        model_arguments("team/other", Fetches())


def test_a_folder_of_that_name_comes_first_and_no_path_is_asked_for(hub: ModelHub, tmp_path: Path):
    (tmp_path / NAME).mkdir(parents=True)
    (tmp_path / NAME / "config.json").write_bytes(whole()["config.json"])
    assert model_arguments(NAME, Fetches())["config"] == whole()["config.json"].decode()
    for text in ("./other", "/no/such/folder", "~/other"):
        with pytest.raises(NotFoundError, match="there is no folder"):
            model_arguments(text, Fetches())
    assert hub.asked == []


class Usage(NamedTuple):
    free: int


def test_a_disk_that_is_too_small_is_told_before_anything_is_fetched(
    hub: ModelHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    hub.models[NAME] = HubFolder(whole())
    fetches = Fetches()
    model_arguments(NAME, fetches)
    spare = fetching.SPARE_BYTES
    monkeypatch.setattr(fetching.shutil, "disk_usage", lambda _: Usage(spare + 2_000_000))
    with pytest.raises(
        DiskFullError, match=r"no room for team/prose: .* take 2\.4 MiB of the disk"
    ):
        fetches.check_room(tmp_path)
    monkeypatch.setattr(fetching.shutil, "disk_usage", lambda _: Usage(spare + 3_000_000))
    fetches.check_room(tmp_path)
    assert hub.sent == 0


def test_what_lies_in_the_cache_is_the_library_s_own_form(hub: ModelHub, tmp_path: Path):
    from huggingface_hub import snapshot_download

    hub.models[NAME] = HubFolder(whole())
    folder = fetched(NAME, tmp_path)
    hub.sent = 0
    theirs = Path(snapshot_download(NAME, allow_patterns=sorted(READ)))
    assert (theirs / SHARDS[1]).samefile(folder / SHARDS[1])
    assert hub.sent == 0
