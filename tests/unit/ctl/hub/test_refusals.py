"""Whatever is wrong with a model is told by a command and its dry run alike, before it is fetched.

The table: each folder and each model of the hub that is none, given to each option that takes one.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from jupiterd.ctl.hub import fetches as fetching
from jupiterd.ctl.hub.listing_diagnosis import CONFIG
from jupiterd.errors import TooLargeForDeviceError
from tests.support.ctl.tiny_models import INDEX, NAME, NO_MODELS, SHARDS, whole, without
from tests.support.sources.model_hub import HubFolder, ModelHub
from tests.unit.ctl.conftest import Ran, ScriptedDaemon

pytestmark = pytest.mark.net

Ctl = Callable[..., Ran]

TAKES_ONE = {
    "train start --model": ("train", "start", "--data", "letters", "--model"),
    "cycle start --init": ("cycle", "start", "--domain", "python", "--init"),
}

SAYS_OF_FOLDERS = {
    "GGUF alone": ({"config.json": whole()["config.json"], "m.gguf": b"GGUF"}, "as m.gguf"),
    "pickles": (without(*SHARDS, INDEX, "consolidated.safetensors"), "as pytorch_model.bin"),
    "no configuration": (without("config.json"), "there is no config.json in"),
    "a shard less": (without(SHARDS[1]), f"lacks {SHARDS[1]}"),
    "a shard cut off": (
        without(SHARDS[1]) | {SHARDS[1]: whole()[SHARDS[1]][:-16]}, "16 bytes are missing",
    ),
    "a shard that is none": (without(SHARDS[1]) | {SHARDS[1]: b"what?"}, "no safetensors"),
    "an index that is none": (without(INDEX) | {INDEX: b"[]"}, "can't be read"),
    "weights by another name": (
        without(*SHARDS, INDEX), "holds consolidated.safetensors, and neither model.safetensors",
    ),
    "an empty file": (without(*SHARDS, INDEX, model__safetensors=b""), "is cut off"),
    "quantized": (whole(quantization_config={"quant_method": "gptq"}), "are quantized"),
    "a name nobody knows": (whole(model_type="lama"), "is a 'lama' model"),
    "no name": (whole(model_type=None), "has no model_type"),
    "an encoder": (whole(model_type="bert"), "its tokens see those behind them"),
    "pictures, too": (
        whole(model_type="llava", text_config={"model_type": "llama"}), "isn't of text alone",
    ),
    "no JSON": (without("config.json", config__json=b"{"), "isn't one JSON object"),
    "a list": (without("config.json", config__json=b"[1]"), "isn't one JSON object"),
}  # fmt: skip

RUN = {
    "train": "c0ffee", "model": "prose", "name": "letters", "ranks": 1, "batch_size": 1,
    "gradient_accumulation_steps": 1, "batch_sequences": 1, "seq_len": 16, "parameters": 9,
}  # fmt: skip


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def refused(ctl: Ctl, daemon: ScriptedDaemon, *command: str) -> str:
    """Return what refuses a command, and its dry run in the same words."""
    daemon.executed.clear()
    real = ctl(*command, "--yes")
    dry = ctl(*command, "--dry-run")
    assert real.exit_code != 0
    assert (dry.exit_code, dry.err, dry.out) == (real.exit_code, real.err, real.out)
    first, empty, hint, *more = real.err.splitlines()
    assert first.startswith("jupiterctl: error: ")
    assert (empty, more) == ("", [])
    assert hint.startswith("hint: ")
    assert not {verb for verb, _ in daemon.executed} - {"dry_run", "cycle.plan"}
    return first


@pytest.mark.parametrize("option", TAKES_ONE)
@pytest.mark.parametrize("name", NO_MODELS)
def test_what_is_no_model_of_the_hub_is_refused_alike(
    hub: ModelHub, daemon: ScriptedDaemon, ctl: Ctl, name: str, option: str
):
    hub.models[NAME], says = NO_MODELS[name]
    assert says in refused(ctl, daemon, *TAKES_ONE[option], NAME)
    assert hub.sent == 0


@pytest.mark.parametrize("option", TAKES_ONE)
@pytest.mark.parametrize("name", SAYS_OF_FOLDERS)
def test_what_is_no_folder_of_a_model_is_refused_alike(
    daemon: ScriptedDaemon, ctl: Ctl, tmp_path: Path, name: str, option: str
):
    files, says = SAYS_OF_FOLDERS[name]
    folder = tmp_path / "theirs"
    folder.mkdir()
    for each, data in files.items():
        if "/" not in each:
            (folder / each).write_bytes(data)
    assert says in refused(ctl, daemon, *TAKES_ONE[option], str(folder))


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("train start --model", "doesn't say which model it is for"),
        ("cycle start --init", "doesn't say which model it is for"),
    ],
)
def test_a_folder_of_an_adapter_alone_is_refused(
    daemon: ScriptedDaemon, ctl: Ctl, tmp_path: Path, option: str, says: str
):
    """Training may begin with one, where its base is known."""
    (tmp_path / "adapter_config.json").write_bytes(b"{}")
    assert says in refused(ctl, daemon, *TAKES_ONE[option], str(tmp_path))


@pytest.mark.parametrize("option", TAKES_ONE)
def test_names_that_lead_nowhere_are_refused_alike(
    hub: ModelHub, daemon: ScriptedDaemon, ctl: Ctl, option: str
):
    hub.models[NAME] = HubFolder(whole())
    for name, says in (
        ("team/other", "neither a folder team/other on this machine"),
        (f"{NAME}@v3", "has no revision v3"),
        ("./none", "there is no folder none on this machine"),
    ):
        assert says in refused(ctl, daemon, *TAKES_ONE[option], name)
    hub.too_often = 100
    assert "asked too often" in refused(ctl, daemon, *TAKES_ONE[option], NAME)


GENERATORS = ("an encoder", "an adapter", "GGUF alone", "pickles", "no configuration", "not for us")


@pytest.mark.parametrize("name", GENERATORS)
def test_a_generator_that_is_none_is_refused_alike(
    hub: ModelHub, daemon: ScriptedDaemon, ctl: Ctl, name: str
):
    hub.models[NAME], says = NO_MODELS[name]
    start = "cycle", "start", "--domain", "python", "--generator", NAME
    assert says in refused(ctl, daemon, *start)
    hub.models[NAME] = HubFolder(without("tokenizer.json"))
    assert "it lacks tokenizer.json" in refused(ctl, daemon, *start)
    assert hub.sent == 0


@pytest.mark.parametrize("option", TAKES_ONE)
def test_what_fits_nobody_s_memory_or_disk_is_refused_before_its_weights_are_fetched(
    hub: ModelHub,
    daemon: ScriptedDaemon,
    ctl: Ctl,
    monkeypatch: pytest.MonkeyPatch,
    option: str,
):
    hub.models[NAME] = HubFolder(whole())
    verb = ".".join(TAKES_ONE[option][:2])
    with monkeypatch.context() as small:
        small.setattr(fetching, "SPARE_BYTES", 1 << 60)
        now = shutil.disk_usage("/")  # others write to the disk between a command and its dry run
        small.setattr(fetching.shutil, "disk_usage", lambda _: now)
        assert "no room for team/prose" in refused(ctl, daemon, *TAKES_ONE[option], NAME)
        daemon.refusals = {verb: TooLargeForDeviceError("it fits nobody's memory")}
        says = refused(ctl, daemon, *TAKES_ONE[option], NAME)
        assert "it fits nobody's memory" in says, "told before that"
    assert hub.sent == 0
    asked = [line for line in hub.asked if line.startswith("GET") and "/resolve/" in line]
    names = {line.split()[1].rpartition("/")[2] for line in asked}
    assert names <= {CONFIG, INDEX, "tokenizer.json", "tokenizer_config.json"}


def test_nothing_is_fetched_for_what_would_be_refused_just_now(
    hub: ModelHub, daemon: ScriptedDaemon, ctl: Ctl
):
    hub.models[NAME] = HubFolder(whole())
    hinders = {"message": "training letters is running already", "hint": "stop it"}
    daemon.results["dry_run"] = {
        "tried": "train.start", "foretold": RUN | {"refused_now": hinders}
    }  # fmt: skip
    start = ("train", "start", "--data", "letters", "--model", NAME)
    ran = ctl(*start)
    assert (ran.exit_code, "running already" in ran.err, "stop it" in ran.err) == (7, True, True)
    assert hub.sent == 0
    dry = ctl(*start, "--dry-run")
    assert dry.exit_code == 0, dry.err
    assert "just now it would be refused: training letters is running already" in dry.out


@pytest.mark.parametrize("option", TAKES_ONE)
def test_a_dry_run_says_what_would_be_fetched_and_the_command_fetches_it_before_it_is_ordered(
    hub: ModelHub, daemon: ScriptedDaemon, ctl: Ctl, option: str
):
    hub.models[NAME] = HubFolder(whole())
    dry = ctl(*TAKES_ONE[option], NAME, "--dry-run")
    assert dry.exit_code == 0, dry.err
    assert "would fetch 1.2 MiB of team/prose (commit " in dry.out
    assert hub.sent == 0
    verb = ".".join(TAKES_ONE[option][:2])
    daemon.results["train.start"] = RUN
    daemon.executed.clear()
    real = ctl(*TAKES_ONE[option], NAME)
    assert real.exit_code == 0, real.err
    verbs = [told for told, _ in daemon.executed]
    assert (verbs[0], verbs[-1]) == ("dry_run", verb)
    assert set(verbs[1:-1]) == {"hub.fetch"}
    checked, ordered = (arguments for told, arguments in daemon.executed if told != "hub.fetch")
    given = ordered.get("init") or ordered
    assert checked["to_fetch"] == [given["weights_folder"]]
    assert (Path(given["weights_folder"]) / SHARDS[1]).read_bytes() == whole()[SHARDS[1]]
    heard = [arguments for told, arguments in daemon.executed if told == "hub.fetch"]
    assert heard[-1]["ended"] == "brought"
    assert heard[-1]["done"] == heard[-1]["total"]


def test_a_tokenizer_comes_before_the_weights_and_the_daemon_looks_at_it(
    hub: ModelHub, daemon: ScriptedDaemon, ctl: Ctl, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(fetching, "SMALL_BYTES", 0)
    hub.models[NAME] = HubFolder(whole())
    dry = ctl(*TAKES_ONE["train start --model"], NAME, "--dry-run")
    assert [verb for verb, _ in daemon.executed] == ["dry_run", "dry_run"]
    assert "would fetch 1.2 MiB of team/prose" in dry.out
    assert hub.sent == 0
    again = ctl(*TAKES_ONE["train start --model"], NAME, "--dry-run")
    assert [verb for verb, _ in daemon.executed] == ["dry_run"] * 3
    assert again.out == dry.out


def test_data_is_cut_by_the_tokenizer_of_a_model_of_the_hub(
    hub: ModelHub, daemon: ScriptedDaemon, ctl: Ctl, tmp_path: Path
):
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "one.txt").write_text("dear all")
    daemon.results["data.prepare"] = {"data": "c0ffee", "name": "texts"}
    hub.models[NAME] = HubFolder(whole())
    prepare = "data", "prepare", "texts", "--tokenizer"
    ran = ctl(*prepare, NAME)
    assert ran.exit_code == 0, ran.err
    folder = Path(daemon.executed[-1][1]["source"]["tokenizer_path"])
    names = {path.name for path in folder.iterdir()}
    assert names == {"config.json", "tokenizer.json", "tokenizer_config.json"}
    assert hub.sent == 0
    hub.models[NAME] = HubFolder(without("tokenizer.json"))
    assert "holds no tokenizer.json" in refused(ctl, daemon, *prepare, NAME)
    assert "neither a folder team/other" in refused(ctl, daemon, *prepare, "team/other")
    hub.models[NAME] = HubFolder(whole(), status=503)
    assert ctl(*prepare, NAME).exit_code == 0, "it lies in the cache"


def test_a_model_that_is_talked_to_is_known_before_its_weights_are_here(
    hub: ModelHub, daemon: ScriptedDaemon, ctl: Ctl
):
    hub.models[NAME] = HubFolder(whole())
    ctl(*TAKES_ONE["cycle start --init"], NAME, "--dry-run")
    assert daemon.executed[-1][1]["arguments"]["init"]["is_chat"] is True
    assert hub.sent == 0


def test_a_plan_reads_the_configuration_alone(hub: ModelHub, daemon: ScriptedDaemon, ctl: Ctl):
    hub.models[NAME] = HubFolder(whole())
    daemon.results["cycle.plan"] = {"schema": "jupiter/v1", "domain": "python", "rounds": 1}
    plan = "cycle", "plan", "--domain", "python", "--verbose", "--init"
    ran = ctl(*plan, NAME)
    assert "round 1 begins with team/prose, of which cycle start fetches 1.2 MiB" in ran.out
    (told,) = (arguments for verb, arguments in daemon.executed if verb == "cycle.plan")
    assert json.loads(told["init"]["config"])["model_type"] == "llama"
    assert hub.sent == 0
    hub.models[NAME], says = NO_MODELS["an adapter"]
    assert says in ctl(*plan, NAME).err
