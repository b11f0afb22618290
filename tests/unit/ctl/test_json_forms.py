"""With -o json every command prints one JSON document on stdout, and its keys are kept in a file.

golden/json_forms.json has the keys of each command's document with the types of their values; a
change there is one that scripts may have to follow. JUPITER_UPDATE_GOLDEN=1 writes it anew.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from jupiterd.ctl.main import cli
from jupiterd.ctl.sources import source_reachability
from tests.support.ctl.command_tree import commands
from tests.support.ctl.documents import (
    BETA,
    DATA,
    FINISHED,
    GAMMA,
    STATUS_WITH_NEWCOMER,
    TRAINED,
    WAITING,
    WHY,
    audit,
    cycle,
)
from tests.support.ctl.model_material import MODELS, model
from tests.tui.screens.test_cycles_screen import REVIEW
from tests.unit.ctl.cluster.test_branches import CYCLE, PIN, TWO
from tests.unit.ctl.cluster.test_cluster_leave import LEFT
from tests.unit.ctl.cluster.test_cluster_merge import PLAN
from tests.unit.ctl.cycle.test_gate import judged, known_to
from tests.unit.ctl.data.test_data import PURGED
from tests.unit.ctl.diagnose.test_check import ALIVE, WIRED, rank
from tests.unit.ctl.diagnose.test_doctor import DOCUMENT as DOCTOR
from tests.unit.ctl.diagnose.test_events import EVENTS
from tests.unit.ctl.node.test_node_show import DOCUMENT as NODE
from tests.unit.ctl.train.test_train import LAYOUTS, RECORDED

GOLDEN = Path(__file__).parent / "golden" / "json_forms.json"
SCHEMA = {"schema": "jupiter/v1"}

WITHOUT_JSON = {
    "launch run": "what it prints is the script's",
    "launch logs": "what it prints is the script's",
    "model serve": "it prints a line for each request until it is stopped",
    "completion": "it prints a program for a shell",
    "domain schema": "it prints a JSON Schema, whose form isn't ours",
}

ELSEWHERE = {
    "model chat": "chat/test_one_answer.py",
    "model export": "model/test_model.py",
    "model eval": "model/test_model_eval.py",
    "data export": "data/test_data_export.py",
    "cycle report": "test_report.py",
    "launch list": "launch/test_known.py",
    "launch stop": "launch/test_known.py",
}
"""Commands whose documents tell of files that are long in the making, or of what a model says: they
have tests of their own that read them."""

ARGUMENTS = {
    "status": "",
    "node approve": "gamma --yes",
    "node drain": "beta",
    "node list": "",
    "node remove": f"{BETA} --yes",
    "node resume": "beta",
    "node role": "beta idle",
    "node show": "beta",
    "node trust": "beta --yes",
    "cluster branches": "",
    "cluster close": "",
    "cluster leave": "--yes",
    "cluster merge": "attic --yes",
    "cluster open": "",
    "cluster rename": "attic",
    "cluster show": "",
    "cluster switch": f"{PIN['branch']} --yes",
    "cluster token": "",
    "check links": "",
    "check sync": "",
    "domain lint": "python --offline",
    "domain list": "",
    "domain new": "mine",
    "cycle explain": "",
    "cycle list": "",
    "cycle pause": "",
    "cycle plan": "--domain python",
    "cycle resume": "",
    "cycle rollback": "--yes",
    "cycle extend": "",
    "cycle dismiss": "",
    "dismiss": "",
    "cycle start": "--domain python",
    "cycle status": "",
    "cycle stop": "--yes",
    "cycle watch": "",
    "gate run": "",
    "model list": "",
    "model promote": "k1 --yes",
    "model show": "python/2",
    "train start": "--data letters --model 1m",
    "train status": "",
    "train stop": "--yes",
    "train watch": "",
    "data audit": "",
    "data list": "",
    "data prepare": "letters",
    "data purge": "--source docs --yes",
    "data remove": "letters --yes",
    "data stop": "--yes",
    "data samples": "",
    "data why": "abababab",
    "monitor": "--once",
    "events": "",
    "logs": "",
    "doctor": "",
    "version": "",
}
"""Every other command, with what it takes to print something."""

WAITED = ("cycle pause", "cycle stop", "train stop", "node drain")
"""Commands that may wait until it is done: what they print is the same then."""


@pytest.fixture
def daemon(daemon, tmp_path, monkeypatch):
    """A daemon that has an answer to everything, in a folder that has text."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "one.txt").write_text("dear all")
    (daemon.state_dir / "logs").mkdir()
    (daemon.state_dir / "logs" / "jupiterd.log").write_text("ready\n")
    monkeypatch.setattr(source_reachability, "reach", lambda *_: [], raising=False)
    daemon.documents |= {
        "status": STATUS_WITH_NEWCOMER | {"nodes": [*ALIVE, WAITING]},
        "cycle": SCHEMA | {"cycle": FINISHED},
        "cycles": SCHEMA | {"cycles": [{"id": FINISHED["id"], "state": "finished"}]},
        "train": SCHEMA | {"train": TRAINED},
        "data": SCHEMA | {"data": [DATA]},
        "audit": SCHEMA | {"audit": [audit()]},
        "why": SCHEMA | {"why": WHY},
        "review": SCHEMA | REVIEW,
        "models": SCHEMA | {"models": MODELS},
        "model": SCHEMA | {"model": model()},
        "branches": TWO,
        "events": EVENTS,
        "node": NODE,
        "doctor": DOCTOR,
    }
    known_to(daemon, judged(tmp_path / "verdict"))
    role = {"node": BETA, "name": "beta", "role": "idle", "workers_left": 1}
    ways = {"node": BETA, "name": "beta", "paths": [WIRED]}
    sums = {"engine": "torch/gloo", "reason": "as asked", "nodes": [rank("alpha", 0)]}
    switched = {"cycle": CYCLE, "branch": PIN["branch"], "leaf": PIN["leaf"], "rounds": 0}
    results = {
        "node.approve": {"node": GAMMA, "name": "gamma"},
        "node.remove": {"node": BETA, "name": "beta"},
        "node.role": role,
        "node.trust": {"node": BETA, "name": "beta"},
        "cluster.open": {"open": True, "closes_in_s": 600.0},
        "cluster.close": {"open": False},
        "cluster.rename": {"name": "attic"},
        "cluster.token": {"token": "jupiter-abc", "id": "1f2e", "uses": 1, "expires_in_s": 86400.0},
        "cluster.leave": LEFT,
        "cluster.merge": PLAN | {"done": True},
        "cluster.switch": switched | {"pinned": True},
        "check.links": ways,
        "check.sync": sums,
        "cycle.start": {"cycle": cycle()["id"], "sheet": [], "layouts": LAYOUTS},
        "cycle.plan": {"domain": "python", "rounds": 1},
        "cycle.pause": {"cycle": cycle()["id"]},
        "cycle.resume": {"cycle": cycle()["id"]},
        "cycle.stop": {"cycle": cycle()["id"]},
        "cycle.rollback": {
            "student": "k1",
            "from_round": 3,
            "generates": True,
            "promoted": "python/1",
        },
        "cycle.extend": {"cycle": cycle()["id"], "rounds": 3, "from_round": 3},
        "cycle.dismiss": {"dismissed": [{"id": cycle()["id"], "name": "python"}]},
        "alarm.dismiss": {
            "dismissed": [{"key": "verdict:c0ffee/1", "code": "verdict", "title": "round 1"}]
        },
        "model.promote": {"student": "k1", "from_round": 3, "generates": True},
        "train.start": RECORDED | {"layouts": LAYOUTS},
        "train.stop": {"train": RECORDED["train"]},
        "data.prepare": {"data": DATA["id"], "name": "letters"},
        "data.purge": PURGED,
        "data.remove": {"data": DATA["id"], "name": "letters"},
        "data.stop": {"data": DATA["id"], "name": "letters"},
    }
    daemon.results |= {verb: SCHEMA | result for verb, result in results.items()}
    daemon.watched.put(FINISHED)
    return daemon


def form(value: object) -> object:
    """Return the keys of a document, and of each value its type; of lists the forms in them."""
    if isinstance(value, Mapping):
        return {str(key): form(each) for key, each in sorted(value.items())}
    if isinstance(value, list):
        forms = [form(each) for each in value]
        return [each for place, each in enumerate(forms) if each not in forms[:place]]
    return type(value).__name__


def test_no_command_is_forgotten():
    told = [*WITHOUT_JSON, *ELSEWHERE, *ARGUMENTS]
    assert sorted(name for name, _ in commands(cli)) == sorted(told)


@pytest.mark.parametrize("command", ELSEWHERE)
def test_what_is_tested_elsewhere_is(command):
    text = (Path(__file__).parent / ELSEWHERE[command]).read_text()
    words = ", ".join(f'"{word}"' for word in command.split())
    assert [line for line in text.splitlines() if f"ctl({words}" in line and '"json"' in line]


@pytest.mark.parametrize("command", ARGUMENTS)
def test_a_document_with_its_schema_is_all_that_is_on_stdout(command, daemon, ctl):
    if command == "train watch":
        daemon.watched.get()
        daemon.watched.put(TRAINED)
    ran = ctl(*command.split(), *ARGUMENTS[command].split(), "-o", "json")
    assert ran.exit_code in (0, 8), ran.err
    assert ran.err == ""
    document: dict[str, Any] = json.loads(ran.out)
    assert document["schema"] == "jupiter/v1"
    kept = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
    if os.environ.get("JUPITER_UPDATE_GOLDEN"):
        GOLDEN.write_text(
            json.dumps(kept | {command: form(document)}, indent=1, sort_keys=True) + "\n"
        )
        return
    assert kept[command] == form(document)


@pytest.mark.parametrize("command", WAITED)
def test_a_command_that_has_waited_prints_the_same_document(command, daemon, ctl):
    daemon.documents["cycle"]["cycle"] = FINISHED | {"state": "stopped", "phase": None}
    daemon.documents["train"]["train"] = TRAINED | {"state": "stopped", "phase": None}
    daemon.documents["node"] = NODE | {"processes": [], "note": ""}
    ran = ctl(*command.split(), *ARGUMENTS[command].split(), "--wait", "-o", "json")
    assert (ran.exit_code, ran.err) == (0, "")
    kept = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
    assert kept[command] == form(json.loads(ran.out))
