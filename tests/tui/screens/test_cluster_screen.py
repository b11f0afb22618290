"""The screen of the cluster: machines, links, and what people can do about a machine."""

from contextlib import asynccontextmanager

import pytest

from jupiter_tui.drawings.nodes import nodes
from jupiter_tui.drawings.primitives.lines import Tone, width_of
from jupiter_tui.drawings.primitives.listing import Choice
from jupiter_tui.drawings.topology import topology
from jupiterd.client.watch import Link, LinkChanged, Snapshot
from tests.support.tui.documents import RECORDED, of, scene, status
from tests.support.tui.pictures import StillTui, until
from tests.unit.ctl.node.test_node_show import DOCUMENT

NODES = RECORDED["nodes"]
ENDS = [[NODES[0]["id"], NODES[1]["id"]], [NODES[1]["id"], NODES[2]["id"]]]
LINKS = {
    "links": [
        {"nodes": ENDS[0], "kind": "thunderbolt", "rtt_s": 0.001, "bits_per_s": 18.2e9},
        {"nodes": ENDS[1], "kind": "wifi", "rtt_s": 0.012, "bits_per_s": 140e6},
        {"nodes": [NODES[0]["id"], NODES[2]["id"]], "kind": None, "rtt_s": None,
         "bits_per_s": None},
    ]
}  # fmt: skip
GPU = {"name": "NVIDIA GeForce RTX 4090", "memory_bytes": 24 << 30}
BUSY = {"utilization_percent": 89.0, "memory_used_bytes": 23.5 * (1 << 30),
        "temperature_celsius": 85.0, "power_watts": 402.0}  # fmt: skip


@asynccontextmanager
async def opened(document=None, **options):
    """Open the screen on a cluster."""
    app = StillTui(**options)
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        app.take_status(LinkChanged(Link.LIVE))
        app.take_status(Snapshot(document or RECORDED))
        app.take_document("links", Snapshot(LINKS))
        app.flush()
        yield app, pilot


def _text(lines) -> list[str]:
    return ["".join(cell.text for cell in made) for made in lines]


def _row(node, width=200):
    listing = nodes(of(status(nodes=[node])), Choice(), width)
    return listing.rows[0].line


def test_a_machine_with_accelerators_says_how_busy_and_hot_they_are():
    node = NODES[0] | {
        "hardware": {"gpus": [GPU, GPU]}, "tokens_per_s": 5321.0, "step_lag": 2, "rtt_s": 0.0021,
        "gpu_loads": [BUSY, dict.fromkeys(BUSY)],
    }  # fmt: skip
    words = "".join(cell.text for cell in _row(node))
    for word in ("2 x RTX 4090", "89 %", "49 %", "85 C", "402", "5,321", "2.1 ms"):
        assert word in words
    tones = {cell.text.strip(): cell.tone for cell in _row(node)}
    assert tones["85 C"] is Tone.WARN
    assert tones["2"] is Tone.WARN


def test_what_is_not_known_is_never_nothing():
    words = "".join(cell.text for cell in _row(NODES[0] | {"load": {}, "gpu_loads": []}))
    assert words.count("N/A") >= 8
    assert " 0 %" not in words


def test_links_are_drawn_between_their_ends_the_slowest_first():
    shown = scene(Snapshot(RECORDED), others={"links": Snapshot(LINKS)})
    lines = topology(shown, 74, 9)
    unknown, wifi, thunderbolt, hint = _text(lines)
    assert "node-2" in thunderbolt
    assert "═ thunderbolt 18.2 Gbit/s 1.0 ms ═" in thunderbolt
    assert "~ wifi 140 Mbit/s 12 ms ~" in wifi
    assert "N/A" in unknown
    assert "check links" in hint
    assert len(topology(shown, 140, 9)) == 3, "two stand side by side where there is room"
    assert max(map(width_of, lines[:3])) <= 74


def test_before_anybody_else_came_there_is_no_link():
    shown = scene(Snapshot(RECORDED), others={"links": Snapshot({"links": []})})
    assert _text(topology(shown, 60, 9)) == ["no link yet: this machine is alone"]


@pytest.mark.parametrize(
    ("key", "command"),
    [
        ("D", "jupiterctl node drain b06e04e2"),
        ("R", "jupiterctl node resume b06e04e2"),
        ("X", "jupiterctl node remove b06e04e2"),
    ],
)
async def test_a_key_asks_about_the_chosen_machine_by_name(key, command):
    async with opened() as (_, pilot):
        await pilot.press("end", key)
        text = await until(pilot, lambda text: command in text)
        assert "node-3 (b06e04e2)" in text


async def test_a_key_dismisses_what_health_shows_but_for_questions():
    gone = {"key": "node-gone:a", "code": "node-gone", "title": "beta is gone", "hint": "wake it"}
    asked = {"key": "node-waits:b", "code": "node-waits", "title": "zulu waits", "hint": "let it"}
    async with opened(status(health=[gone, asked])) as (_, pilot):
        await pilot.press("H")
        text = await until(pilot, lambda text: "jupiterctl dismiss node-gone:a" in text)
        assert "beta is gone" in text
    async with opened(status(health=[asked])) as (_, pilot):
        await pilot.press("H")
        await until(pilot, lambda text: "nothing that can be dismissed" in text)


async def test_a_machine_that_waits_is_let_in_by_the_words_that_it_shows():
    told = {"state": "pending", "words": "radar canvas tiny plug"}
    nodes = [node | (told if node["name"] == "node-3" else {}) for node in RECORDED["nodes"]]
    async with opened(status(nodes=nodes)) as (_, pilot):
        await pilot.press("end", "A")
        command = "jupiterctl node approve b06e04e2 --words"
        await until(pilot, lambda text: command in text)


async def test_what_can_not_be_done_about_a_machine_is_said_and_not_asked():
    waiting = {"id": "ee" * 16, "name": "zulu", "state": "pending", "words": "apple river"}
    async with opened(status(nodes=[*NODES, waiting])) as (app, pilot):
        await pilot.press("A")
        await until(pilot, lambda text: "is a member already" in text)
        await pilot.press("end", "X")
        await until(pilot, lambda text: "zulu isn't a member yet" in text)
        assert len(app.screen_stack) == 1
        await pilot.press("A")
        await until(pilot, lambda text: "jupiterctl node approve eeeeeeee" in text)


async def test_a_machine_that_walked_in_gets_a_yes_with_the_key_that_lets_others_in():
    async with opened(status(nodes=[{**NODES[0], "trusted": False}])) as (_, pilot):
        await pilot.press("A")
        await until(pilot, lambda text: "jupiterctl node trust" in text)


async def test_machines_can_be_let_in():
    async with opened() as (_, pilot):
        await pilot.press("O")
        await until(pilot, lambda text: "jupiterctl cluster open" in text)


async def test_a_dashboard_that_only_reads_asks_nothing():
    async with opened(is_readonly=True) as (app, pilot):
        await pilot.press("A", "D", "R", "X", "O")
        assert len(app.screen_stack) == 1


async def test_enter_shows_a_machine_with_its_last_minutes_and_its_log():
    async with opened() as (app, pilot):
        await pilot.press("end", "enter")
        (source,) = app.screen.sources
        app.take_document(source.noun, Snapshot(DOCUMENT))
        app.flush()
        text = await until(pilot, lambda text: "LAST TEN MINUTES" in text)
        assert "97.0 %" in text
        assert "▁" in text
        await pilot.press("end")
        await until(pilot, lambda text: "the cable was pulled" in text)
        await pilot.press("escape")
        await until(pilot, lambda text: ">   node-3" in text)
