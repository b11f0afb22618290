"""--wait of what ends a cycle's or a training's work: it returns once nobody does any of it."""

import pytest

from jupiterd.ctl.waiting import wait_until
from tests.support.ctl.documents import ALPHA, PAUSED, STATUS, cycle, train

CYCLE, TRAINING, ISLAND = PAUSED["id"], train()["id"], "15" * 8
SCHEMA = {"schema": "jupiter/v1"}


def at_work(*ids, note=""):
    rows = None if note else [{"task": "train", "id": each, "epoch": 1} for each in ids]
    return {"node": {"id": ALPHA, "name": "desk\x1b[2J"}, "processes": rows, "note": note}


@pytest.fixture
def daemon(daemon):
    daemon.results |= {
        "cycle.pause": SCHEMA | {"cycle": CYCLE},
        "cycle.stop": SCHEMA | {"cycle": CYCLE},
        "train.stop": SCHEMA | {"train": TRAINING},
    }
    return daemon


@pytest.fixture
def goes_on(daemon, monkeypatch):
    """Let the daemon's documents be others at each look; return what hasn't been looked at."""

    def script(*looks):
        left = [SCHEMA | look for look in looks]

        def pause(_):
            daemon.documents |= left.pop(0)

        monkeypatch.setattr(wait_until, "pause", pause)
        pause(0.0)
        return left

    return script


def told(noun, document, node):
    return {noun: SCHEMA | {noun: document}, "node": node, "status": STATUS}


@pytest.mark.parametrize(
    ("command", "noun", "state", "says"),
    [
        (("cycle", "pause"), "cycle", "paused", "cycle c0ffee00 is paused, and no machine works"),
        (("cycle", "stop", "--yes"), "cycle", "stopped", "stopped, and no machine works on it"),
        (("train", "stop", "--yes"), "train", "stopped", "stopped, and no machine works on it"),
    ],
)
def test_it_waits_for_the_order_the_leader_and_every_machine(
    ctl, goes_on, command, noun, state, says
):
    run = {"cycle": cycle, "train": train}[noun]
    own = run()["id"][:8]
    islands = [{"id": ISLAND}, {"island": 2}]
    rests = run(state, phase=None, islands=islands)
    looks = goes_on(
        told(noun, run("running"), at_work()),  # this machine hasn't heard of it
        told(noun, run(state, phase="train"), at_work()),  # the checkpoint isn't recorded yet
        told(noun, rests, at_work(f"{own}/r1/train/0")),
        told(noun, rests, at_work(f"{ISLAND[:8]}/r1/train/0")),
        told(noun, rests, at_work(note="desk doesn't answer")),
        told(noun, rests, at_work("dada0000/r1/pack/0")),  # of somebody else
    )
    ran = ctl(*command, "--wait")
    assert (ran.exit_code, ran.err, looks) == (0, "", [])
    assert ran.out.startswith(says)


@pytest.mark.parametrize(
    ("document", "node", "says"),
    [
        (cycle("running"), at_work(), "the order hasn't reached this machine"),
        (cycle("paused"), at_work(), "its phase train is being ended"),
        (
            PAUSED | {"phase": None},
            at_work("c0ffee00/r1/train/0"),
            "desk?[2J still does: train",
        ),
        (
            PAUSED | {"phase": None},
            at_work(note="it\x1b hangs"),
            "desk?[2J says nothing: it? hangs",
        ),
    ],
)
def test_it_waits_no_longer_than_it_may_and_says_for_what(daemon, ctl, document, node, says):
    daemon.documents |= told("cycle", document, node)
    ran = ctl("cycle", "pause", "--wait", "--timeout", "0s")
    assert (ran.exit_code, ran.out) == (4, "")
    assert f"error: cycle c0ffee00 isn't at rest yet: {says}\n" in ran.err
    assert "hint: what was ordered stands; look at it: jupiterctl cycle status" in ran.err


def test_a_machine_that_is_gone_is_not_waited_for(daemon, ctl):
    gone = [node | {"state": "gone"} for node in STATUS["nodes"]]
    daemon.documents |= told("cycle", PAUSED | {"phase": None}, at_work("c0ffee00/r1/train/0"))
    daemon.documents["status"] = STATUS | {"nodes": gone}
    assert ctl("cycle", "pause", "--wait").exit_code == 0


@pytest.mark.parametrize("command", [("cycle", "pause"), ("cycle", "stop"), ("train", "stop")])
def test_a_limit_without_waiting_is_refused_before_anything_is_ordered(daemon, ctl, command):
    ran = ctl(*command, "--timeout", "5s")
    assert (ran.exit_code, daemon.executed) == (2, [])
    assert "--timeout needs --wait" in ran.err
