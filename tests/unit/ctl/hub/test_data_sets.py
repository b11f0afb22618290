"""The hub is asked for a data set by the commands that take one, and by their dry runs."""

from collections.abc import Callable

import pytest

from jupiterd.errors import ExitCode
from tests.support.ctl.documents import STATUS
from tests.support.sources.model_hub import HubFolder, ModelHub
from tests.unit.ctl.conftest import Ran, ScriptedDaemon
from tests.unit.ctl.hub.conftest import point_library_at
from tests.unit.ctl.train.test_train import RECORDED

pytestmark = pytest.mark.net

Ctl = Callable[..., Ran]

NAME = "team/prose"
TAKES_ONE = [("data", "prepare", NAME), ("train", "start", "--data", NAME, "--model", "1m")]

NO_DATA_SETS = {
    "nobody's": (None, ExitCode.NOT_FOUND, "nor such a data set on the hub"),
    "gated": (
        HubFolder({}, status=403, code="GatedRepo"),
        ExitCode.REFUSED,
        "the data set team/prose is open to those alone who have agreed",
    ),
    "not for us": (HubFolder({}, status=403), ExitCode.REFUSED, "doesn't show team/prose"),
    "broken": (HubFolder({}, status=503), ExitCode.UNREACHABLE, "just now: HTTP 503"),
}


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch: pytest.MonkeyPatch, daemon: ScriptedDaemon) -> None:
    monkeypatch.chdir(tmp_path)
    daemon.documents["status"] = STATUS


def check_refused(
    ctl: Ctl, daemon: ScriptedDaemon, command: tuple[str, ...], status: int, says: str
) -> None:
    real, dry = ctl(*command), ctl(*command, "--dry-run")
    assert (dry.exit_code, dry.err, dry.out) == (real.exit_code, real.err, real.out)
    assert real.exit_code == status, real.err
    error, empty, hint = real.err.splitlines()
    assert says in error
    assert (empty, hint.startswith("hint: ")) == ("", True)
    assert daemon.executed == [], "before anything is asked for"


@pytest.mark.parametrize("command", TAKES_ONE, ids=" ".join)
@pytest.mark.parametrize("name", NO_DATA_SETS)
def test_what_the_hub_does_not_give_is_refused_alike(
    hub: ModelHub, daemon: ScriptedDaemon, ctl: Ctl, name: str, command: tuple[str, ...]
):
    kept, status, says = NO_DATA_SETS[name]
    hub.data_sets |= {NAME: kept} if kept else {}
    check_refused(ctl, daemon, command, status, says)


@pytest.mark.parametrize("command", TAKES_ONE, ids=" ".join)
def test_a_hub_that_may_not_or_cannot_be_asked_is_told(
    daemon: ScriptedDaemon, ctl: Ctl, tmp_path, monkeypatch, command: tuple[str, ...]
):
    point_library_at("http://127.0.0.1:9", tmp_path / "cache", monkeypatch)
    check_refused(ctl, daemon, command, ExitCode.UNREACHABLE, "the hub can't be asked: ")
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    check_refused(ctl, daemon, command, ExitCode.UNREACHABLE, "HF_HUB_OFFLINE forbids")


@pytest.mark.parametrize("command", TAKES_ONE, ids=" ".join)
def test_where_others_are_here_one_of_them_may_have_the_way_that_this_machine_lacks(
    daemon: ScriptedDaemon, ctl: Ctl, tmp_path, monkeypatch, command: tuple[str, ...]
):
    point_library_at("http://127.0.0.1:9", tmp_path / "cache", monkeypatch)
    daemon.documents["status"] = STATUS | {"cluster": STATUS["cluster"] | {"nodes_alive": 2}}
    verb = ".".join(command[:2])
    daemon.results[verb] = RECORDED | {"data": "c0ffee"}
    real, dry = ctl(*command), ctl(*command, "--dry-run")
    for ran in (real, dry):
        assert ran.exit_code == 0, ran.err
        assert "the hub can't be asked: " in ran.err
        assert ran.err.endswith("; one of the other machines may have a way to it\n")
    assert [asked for asked, _ in daemon.executed] == [verb, "dry_run"]


@pytest.mark.parametrize("name", NO_DATA_SETS)
def test_what_the_hub_has_answered_is_the_same_for_all_machines(
    hub: ModelHub, daemon: ScriptedDaemon, ctl: Ctl, name: str
):
    daemon.documents["status"] = STATUS | {"cluster": STATUS["cluster"] | {"nodes_alive": 2}}
    kept, status, says = NO_DATA_SETS[name]
    hub.data_sets |= {NAME: kept} if kept else {}
    check_refused(ctl, daemon, TAKES_ONE[0], status, says)


def test_a_name_of_the_hub_is_told_from_a_folder(hub: ModelHub, daemon: ScriptedDaemon, ctl: Ctl):
    hub.data_sets[NAME] = HubFolder({})
    options = ("--subset", "20231101.es", "--name", "prose-es", "--tokenizer", "letters")
    ctl("data", "prepare", NAME, *options)
    (_, arguments), *_ = daemon.executed
    assert arguments["source"] == {"kind": "hugging_face", "path": NAME, "subset": "20231101.es"}
    assert (arguments["name"], arguments["tokenizer"]) == ("prose-es", "letters")
