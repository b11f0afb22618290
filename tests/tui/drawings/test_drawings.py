import pytest

from jupiter_tui.drawings.bits_per_byte import bits
from jupiter_tui.drawings.checkpoints import checkpoints
from jupiter_tui.drawings.completions import completions
from jupiter_tui.drawings.gang import gang
from jupiter_tui.drawings.header import banner, bar
from jupiter_tui.drawings.health import health
from jupiter_tui.drawings.loss import loss as loss_at
from jupiter_tui.drawings.nodes import ALONE, gpu_words
from jupiter_tui.drawings.nodes import nodes as node_list
from jupiter_tui.drawings.outer_rounds import outer_rounds
from jupiter_tui.drawings.phases import START, phases
from jupiter_tui.drawings.primitives.lines import Cell, Tone, width_of
from jupiter_tui.drawings.readings import meter
from jupiter_tui.drawings.readings import readings as readings_at
from jupiter_tui.drawings.too_small import too_small
from jupiter_tui.drawings.topology import topology
from jupiter_tui.drawings.verdicts import events, verdicts
from jupiter_tui.model.loss_view import Look
from jupiter_tui.model.scene import Scene
from jupiterd.client.watch import Delta, Link, LinkChanged, Snapshot
from tests.support.tui.documents import (
    NOON,
    RECORDED,
    all_lines,
    cycle,
    messages,
    of,
    scene,
    status,
    trained,
)
from tests.support.tui.gallery import STUCK

LIVE = LinkChanged(Link.LIVE)
nodes = all_lines(node_list)
LEADER = RECORDED["cluster"]["leader"]


def readings(shown, width, height):
    return readings_at(Look(), shown, width, height)


def loss(shown, width, height):
    return loss_at(Look(), shown, width, height)


DRAWINGS = (
    bar,
    banner,
    nodes,
    topology,
    health,
    phases,
    readings,
    gang,
    verdicts,
    events,
    loss,
    bits,
    checkpoints,
    completions,
    outer_rounds,
    too_small,
)


def _text(drawing, shown: Scene, width: int = 116, height: int = 12) -> list[str]:
    return ["".join(cell.text for cell in line) for line in drawing(shown, width, height)]


def _tone(drawing, shown: Scene, word: str) -> Tone:
    lines = drawing(shown, 116, 12)
    return next(cell.tone for line in lines for cell in line if word in cell.text)


def _node(**changed):
    return RECORDED["nodes"][0] | changed


@pytest.mark.parametrize("drawing", DRAWINGS, ids=lambda drawing: drawing.__name__)
@pytest.mark.parametrize(
    "document",
    [
        {},
        {"schema": "jupiter/v1"},
        {"cluster": None, "nodes": [{}], "cycle": None, "health": [{}], "node": None},
        {"cycle": {"phases": [{}], "verdicts": [{}], "gang": [{}], "events": [{}]}},
        {"cycle": {"round": None, "phases": [{"state": "running"}, {"state": "done"}]}},
        {"fetches": [{}, {"state": "fetching"}]},
    ],
)
@pytest.mark.parametrize("width", [0, 40, 200])
def test_a_daemon_of_another_version_breaks_no_drawing(drawing, document, width):
    drawing(of(document), width, 10)


def test_a_name_can_not_steer_the_terminal():
    shown = of(status(nodes=[_node(name="evil\x1b[2J\n[bold]")]))
    assert "evil?[2J?[bold]" in _text(nodes, shown)[1]


# the header


def test_the_header_tells_the_cluster_and_the_link():
    (text,) = _text(bar, of(RECORDED), 110)
    assert text.startswith("Jupiter   jupiter (")
    assert "3/3 nodes alive   leader node-1   term 1" in text
    assert text.endswith("● live")


def test_the_header_is_exactly_one_line_and_never_loses_the_link():
    for width in range(30, 160):
        (line,) = bar(scene(*messages(1), LinkChanged(Link.STALE, "silent")), width, 1)
        assert width_of(line) == width or width < 40
        assert "stale, as of 12:03:41" in line[-1].text


@pytest.mark.parametrize(
    ("message", "words", "tone"),
    [
        (LinkChanged(Link.CONNECTING), "● connecting, as of 12:03:41", Tone.NOTE),
        (LIVE, "● live", Tone.GOOD),
        (LinkChanged(Link.STALE, "silent"), "● stale, as of 12:03:41", Tone.WARN),
        (LinkChanged(Link.LOST, "x", 1.6), "● lost, retry in 2 s, as of 12:03:41", Tone.BAD),
        (LinkChanged(Link.LOST, "x", 0.0), "● lost, trying again, as of 12:03:41", Tone.BAD),
    ],
)
def test_each_state_of_the_link_has_its_words_and_its_tone(message, words, tone):
    assert bar(scene(*messages(1), message), 160, 1)[0][-1] == Cell(words, tone)


def test_a_missing_leader_and_missing_nodes_stand_out():
    shown = of(status(cluster=RECORDED["cluster"] | {"leader": None, "nodes_alive": 2}))
    assert _tone(bar, shown, "no leader") is Tone.BAD
    assert _tone(bar, shown, "2/3") is Tone.WARN


def test_the_promise_to_change_nothing_is_shown():
    assert "read-only" in _text(bar, scene(*messages(1), is_readonly=True))[0]
    assert "read-only" not in _text(bar, scene(*messages(1)))[0]


def test_a_lost_daemon_is_named_with_its_socket_and_the_way_to_start_it():
    why = "no jupiterd answers on /state/control.sock: why"
    lost = LinkChanged(Link.LOST, why, 1.0, "start it with: jupiterd --state-dir /state")
    assert _text(banner, scene(lost)) == [why, "hint: start it with: jupiterd --state-dir /state"]


def test_a_daemon_that_runs_without_answering_is_named_and_not_to_be_started():
    told = _text(banner, scene(STUCK))
    assert told == [STUCK.reason, f"hint: {STUCK.hint}"]
    assert "start it" not in " ".join(told)


def test_a_lost_link_of_which_nobody_knows_what_to_do_has_no_hint():
    assert _text(banner, scene(LinkChanged(Link.LOST, "x", 1.0))) == ["x"]


def test_there_is_no_banner_while_the_link_lives():
    assert banner(of(RECORDED), 80, 2) == ()


def test_a_first_connection_names_the_socket_that_is_tried():
    assert _text(banner, scene()) == ["connecting to /state/control.sock"]


# the cluster


def test_a_node_is_told_in_one_row():
    node = _node(
        id=LEADER,
        name="alpha",
        role="trainer",
        state="alive",
        load={"cpu_percent": 41.6, "ram_percent": 93.0},
        last_heard_s=0.4,
        hardware={"gpus": [{"name": "NVIDIA H200"}]},
        addresses=["10.0.0.5:47470"],
        reason="it is the fastest",
    )
    shown = of(status(nodes=[node, _node(id="x", name="beta")]))
    assert _text(nodes, shown, 230)[1].split() == [
        "*", "alpha", "(here)", "alive", "trainer", "42", "%", "93", "%", "H200",
        *["N/A"] * 7, "now", "it", "is", "the", "fastest",
    ]  # fmt: skip
    assert _tone(nodes, shown, "alive") is Tone.GOOD
    assert _tone(nodes, shown, "93 %") is Tone.WARN


def test_nodes_stand_in_the_order_of_their_names():
    named = [_node(id=name, name=name) for name in ("gamma", "alpha", "beta")]
    rows = _text(nodes, of(status(nodes=named)))
    assert [row.split()[0] for row in rows] == ["NAME", "alpha", "beta", "gamma"]


def test_the_load_of_a_node_that_is_gone_is_not_shown_any_more():
    gone = _node(id="aa", state="gone", load={"cpu_percent": 50.0}, last_heard_s=60.0)
    shown = of(status(nodes=[gone, _node()]))
    assert "50 %" not in _text(nodes, shown)[1]
    assert _tone(nodes, shown, "gone") is Tone.BAD
    assert _tone(nodes, shown, "60 s") is Tone.BAD


def test_a_narrow_table_keeps_name_state_and_role():
    assert _text(nodes, of(RECORDED), 40)[0].split() == ["NAME", "STATE", "ROLE"]
    assert "CPU" in _text(nodes, of(RECORDED), 76)[0]
    assert "ADDRESS" not in _text(nodes, of(RECORDED), 76)[0]


def test_a_node_without_company_says_what_to_check():
    shown = of(status(nodes=[_node()]))
    assert _text(nodes, shown)[-len(ALONE) :] == list(ALONE)
    assert not set(ALONE) & set(_text(nodes, of(RECORDED)))
    assert max(map(len, _text(nodes, shown, 60))) <= 60, "what to check is wrapped, not cut"


def test_who_keeps_to_this_machine_needs_no_list_of_what_hides_others():
    shown = status(nodes=[_node()], health=[{"code": "alone-locally"}])
    assert not set(ALONE) & set(_text(nodes, of(shown)))


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ([], None),
        (["NVIDIA GeForce RTX 4090"] * 2, "2 x RTX 4090"),
        (["Apple M3 Max"], "M3 Max"),
        (["NVIDIA A100", "NVIDIA T4"], "A100, T4"),
    ],
)
def test_accelerators_in_a_word_or_two(names, words):
    assert gpu_words({"gpus": [{"name": name} for name in names]}) == words


def test_a_warning_shows_code_severity_title_and_hint():
    item = {"code": "node-gone", "severity": "warning", "title": "beta is gone", "hint": "wake it"}
    shown = of(status(health=[item]))
    assert _text(health, shown) == ["warning  beta is gone  node-gone", "         hint: wake it"]
    assert _tone(health, shown, "warning") is Tone.WARN


def test_good_health_is_said():
    assert _text(health, of(status(health=[]))) == ["good: nothing is wrong"]


# the training


def _row(phase, state, **more):
    return {"round": 1, "phase": phase, "state": state} | more


def test_the_phases_of_the_round_with_state_count_and_times():
    rows = [
        _row("collect", "done", done=690, total=690, unit="documents", elapsed_s=12.0),
        _row("generate", "skipped", detail="no generator yet"),
        _row("train", "running", done=120, total=600, unit="steps", elapsed_s=20.0, eta_s=80.0),
        _row("evaluate", "waiting"),
        _row("collect", "running", done=1) | {"round": 2},
    ]
    lines = _text(phases, of(status(cycle=cycle(round=1, phases=rows))), 66)
    assert [" ".join(text.split()) for text in lines[1:]] == [
        "✓ collect done 690 documents 12 s",
        "- generate skipped no generator yet",
        "▶ train running 120 of 600 steps 20 s 1 min 20 s",
        "· evaluate waiting",
    ]


def test_a_phase_that_has_no_numbers_yet_is_preparing():
    rows = [_row("train", "running", done=0, total=0)]
    assert "preparing" in _text(phases, of(status(cycle=cycle(round=1, phases=rows))))[1]


def test_a_phase_says_what_it_does_before_its_first_step():
    preparing = {"stage": "compiling", "elapsed_s": 12.0, "expected_s": 40.0}
    rows = [_row("train", "running", done=0, total=0, preparing=preparing)]
    shown = _text(phases, of(status(cycle=cycle(round=1, phases=rows))))
    assert "compiling, 12 of about 40 s" in shown[1]


def test_models_that_are_fetched_from_the_hub_stand_above_the_phases():
    begun = {
        "name": "team/prose", "state": "fetching", "done": 1 << 20, "total": 4 << 20,
        "bytes_per_s": 1 << 19,
    }  # fmt: skip
    gone = begun | {"name": "team/[bold]", "state": "cut-off"}
    for beneath in (cycle(round=1, phases=[_row("train", "running")]), None):
        shown = of(status(cycle=beneath, fetches=[begun, gone]))
        first, second, *rest = _text(phases, shown)
        assert first == "from the hub: team/prose: 1.0 MiB of 4.0 MiB, 512.0 KiB/s"
        assert second == "from the hub: team/[bold]: 1.0 MiB of 4.0 MiB, cut-off"
        assert rest == _text(phases, of(status(cycle=beneath)))
    assert _tone(phases, shown, "KiB/s") is Tone.STRONG
    assert _tone(phases, shown, "cut-off") is Tone.WARN


def test_without_a_cycle_the_way_to_start_one_is_shown():
    told, how, command = _text(phases, of(status(cycle=None)))
    assert (told, command) == ("no cycle has been started", f"  {START}")
    assert "4 and then N" in how
    only_reads = scene(LinkChanged(Link.LIVE), Snapshot(status(cycle=None)), is_readonly=True)
    assert "N" not in _text(phases, only_reads)[1]


def _readings(**changed) -> dict[str, str]:
    lines = _text(readings, of(status(cycle=cycle(**changed))), 40)
    return {text[:11].strip(): text[11:] for text in lines}


def test_the_readings_of_a_running_training():
    rows = [_row("train", "running", eta_s=80.0)]
    shown = _readings(
        round=1, rounds=2, step=120, total_steps=600, loss=4.12345, tokens_per_s=10240.4,
        tokens=1_234_567, attempt=2, resumed_from_step=100, val_bpb=2.5, phases=rows,
    )  # fmt: skip
    assert shown["round"] == "1 of 2, attempt 2, from step 100"
    assert _readings(attempt=2, gang_encrypted=True)["round"].endswith("attempt 2, encrypted")
    assert shown["step"] == "120 of 600  " + "█" * 4 + "░" * 16 + "  20 %"
    assert shown["loss"] == "4.1235"
    assert shown["tokens/s"] == "10,240"
    assert shown["tokens"] == "1,234,567"
    assert shown["time left"] == "1 min 20 s of train"
    stalled = [_row("train", "running", stalled_s=45.0)]
    assert _readings(round=1, phases=stalled)["time left"] == "stalled for 45 s"
    assert shown["bits/byte"] == "2.5000"


def test_after_its_end_a_training_shows_how_fast_it_was_beside_what_was_predicted():
    told = {"tokens_per_s": None, "predicted_tokens_per_s": 990.0, "measured_tokens_per_s": 1e3}
    shown = _readings(phase=None, **told)
    assert (shown["tokens/s"], shown["predicted"].strip()) == ("1,000", "990")
    writes = _readings(phase="generate", **(told | {"tokens_per_s": 20.0}))
    assert (writes["tokens/s"], writes["predicted"].strip()) == ("20", "N/A"), "of another kind"


def test_what_is_not_known_is_not_zero():
    shown = _readings(total_steps=None, loss=None, tokens_per_s=None, attempt=0, phases=[])
    assert (shown["loss"], shown["tokens/s"], shown["time left"]) == ("N/A", "N/A", "N/A")


def test_a_cycle_that_failed_says_why_and_what_to_do():
    failure = {"code": "disk-full", "message": "no room on beta", "hint": "free some space"}
    shown = _readings(state="failed", failure=failure)
    assert (shown["failed"], shown["hint"]) == ("no room on beta", "free some space")


def test_a_paused_cycle_says_who_paused_it_and_what_goes_on_with_it():
    paused = {"node": "a1" * 16, "name": "alpha", "at": "2026-01-02T03:04:05+00:00", "reason": ""}
    shown = _readings(state="paused", paused=paused)
    assert shown["paused"] == "by alpha at 2026-01-02T03:04:05+00:00"
    assert shown["go on"].startswith("jupiterctl cycle resume ")


def test_a_meter_is_full_only_when_all_is_done():
    assert meter(599, 600, 10) == "█" * 9 + "░"
    assert meter(600, 600, 10) == "█" * 10
    assert meter(700, 600, 10) == "█" * 10
    assert meter(1, 0, 3) == "░░░"


def test_verdicts_come_with_their_numbers_and_reason_the_latest_first():
    first = {"round": 1, "verdict": "PROMOTE", "val_bpb": 2.4, "byte_bpb": 3.05, "reason": "better"}
    second = {"round": 2, "verdict": "ABSTAIN", "val_bpb": None, "reason": ""}
    shown = of(status(cycle=cycle(verdicts=[first, second])))
    assert _text(verdicts, shown) == [
        "round 2  ABSTAIN  not measured",
        "round 1  PROMOTE  2.4000 bits per byte (order-2 byte model 3.0500)",
        "         better",
    ]
    assert _tone(verdicts, shown, "PROMOTE") is Tone.GOOD


def test_events_are_shown_the_newest_first_and_not_without_end():
    told = [{"seq": number, "text": f"event {number}"} for number in range(30)]
    lines = _text(events, of(status(cycle=cycle(events=told))))
    assert lines[0] == "event 29"
    assert len(lines) == 8


def test_the_curve_fills_its_panel():
    lines = _text(loss, scene(*messages(60)), 60, 13)
    assert len(lines) == 13
    assert lines[0].startswith("round 2  smoothed ")


def test_a_curve_says_of_which_round_it_is():
    shown = scene(*messages(60), trained(4, 7.5, round_number=1))
    assert _text(loss, shown, 60, 13)[0] == "round 1  smoothed 7.500 (0.9)  last 7.500"


def test_a_terminal_that_is_too_small_is_told_both_sizes():
    assert _text(too_small, of(RECORDED), 50, 12)[0] == "terminal too small: 50 x 12, needs 60 x 15"


def test_old_data_is_faded():
    assert not scene(LIVE, Snapshot(RECORDED), Delta({})).is_faded
    assert scene(LIVE, Snapshot(RECORDED), LinkChanged(Link.LOST, "x", 1.0), at=NOON).is_faded


def test_who_waits_to_be_let_in_is_a_row_with_its_words():
    reason = "waits to be let in: radar canvas tiny plug"
    waiting = {"id": "c3" * 16, "name": "gamma", "state": "pending", "role": None, "reason": reason}
    rows = _text(nodes, of(status(nodes=[_node(), waiting])), width=200)
    (row,) = (text for text in rows if "gamma" in text)
    assert "pending" in row
    assert reason in row
