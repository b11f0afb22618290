"""A machine reads only what its owner offers: real orders between members, and real workers."""

from collections.abc import AsyncGenerator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.planning.asking_node import asking_node
from jupiterd.cycle.data.local_paths import local_paths
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.catalog.dataset_catalog import data_sets
from jupiterd.daemon.executor.offered_paths import OfferedPaths
from jupiterd.daemon.executor.worker_runner import MICRO_BATCH_FILE
from jupiterd.daemon.leader.machines import Machines
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.daemon.runtime.work_events import WorkOrder
from jupiterd.errors import NotOfferedError
from jupiterd.ids import NodeId
from jupiterd.rpc import peer_pb2
from tests.support.daemon.shown import health_of
from tests.support.daemon.two_nodes import lead, serving, take_for_alive, unite, until

SECRET = "Ada's diary, which she has shown to nobody. " * 8


@pytest.fixture
def diary(tmp_path: Path) -> Path:
    folder = tmp_path / "ada" / "diary"
    folder.mkdir(parents=True)
    (folder / "monday.txt").write_text(SECRET)
    return folder


def prepare(path: Path | str, **more: Any) -> WorkOrder:
    params = {"kind": "folder", "path": str(path), "vocab_size": 300, "holdout": 0.0, **more}
    return WorkOrder("c1/prepare", 1, "prepare", params, {})


@asynccontextmanager
async def members(folder: Path, **told: Any) -> AsyncGenerator[tuple[Node, Node]]:
    async with serving(folder, "one") as one, serving(folder, "two", **told) as two:
        await unite(one, two)
        yield one, two


async def ordered(by: Node, at: Node, order: WorkOrder) -> peer_pb2.WorkEvent:
    """Return the last thing that is said of work that one member orders of another."""
    peer = by.peers.require(at.identity.node_id)
    with peer.channels.in_use() as channels:
        said = [event async for event in channels.control.RunWork(order.to_proto())]
    return said[-1]


@pytest.mark.net
async def test_no_member_reads_another_machines_disk(tmp_path: Path, diary: Path) -> None:
    async with members(tmp_path) as (one, two):
        said = await ordered(one, two, prepare(diary))
        two.observers.events.look()
        two.observers.alerts.look(now_s())
        two.observers.events.look()
        lines = [line for line in health_of(two) if line["code"] == "not-offered"]
        events = [row["text"] for row in two.observers.events.document()["events"]]
    assert said.failure.code == "not-offered", said
    assert f"two doesn't read {diary} for one" in said.failure.message
    assert f"readable_folders: [{diary}]" in said.failure.hint
    assert [line["title"] for line in lines] == [f"two wasn't allowed to read {diary} for one"]
    assert any(f"{diary} for one" in text for text in events), events


@pytest.mark.net
async def test_what_its_own_command_line_names_is_read_and_after_a_restart_too(
    tmp_path: Path, diary: Path
) -> None:
    asked = {"source": {"kind": "folder", "path": str(diary)}, "name": "diary"}
    async with members(tmp_path) as (one, two):
        with pytest.raises(Exception, match="nobody leads"):
            await two.commands.execute("data.prepare", asked)
        assert OfferedPaths(one.state_dir.requested_paths, ())._requested == {}, (
            "others don't learn of it"
        )
    async with members(tmp_path / "again") as (one, _), serving(tmp_path, "two") as two:
        assert (
            two.worker_runner.offered.check("prepare", prepare(diary).params, "one", "two") is None
        )
        with pytest.raises(NotOfferedError):
            two.worker_runner.offered.check("prepare", prepare(diary.parent).params, "one", "two")
        with pytest.raises(NotOfferedError):
            one.worker_runner.offered.check("prepare", prepare(diary).params, "two", "one")


@pytest.mark.net
async def test_a_readable_folder_is_read_for_any_member(tmp_path: Path, diary: Path) -> None:
    async with members(tmp_path, readable_folders=(diary.parent,)) as (one, two):
        said = await ordered(one, two, prepare(diary))
    assert said.HasField("finished"), said


@pytest.mark.net
async def test_no_order_says_where_curves_are_written(tmp_path: Path) -> None:
    """Nor does it hide the reading behind an attempt of a gang."""
    async with members(tmp_path) as (one, two):
        order = WorkOrder("ab12cd34/x", 1, "prepare", {"path": "/etc"}, {}, attempt=1)
        assert (await ordered(one, two, order)).failure.code == "not-offered"
        spool = two.state_dir.spool / "s"
        spool.mkdir()
        heard: dict[str, Any] = {}

        def start_worker(task: Any, *_: Any, **__: Any) -> Any:
            heard.update(task.params)
            raise NotOfferedError("far enough")

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("jupiterd.daemon.executor.worker_runner.start_worker", start_worker)
            params = {"log_dir": "/home/ada", "store": {"name": "x"}, "asked_at": "x"}
            params |= {MICRO_BATCH_FILE: "/home/ada/x"}
            with pytest.raises(NotOfferedError):
                async for _ in two.worker_runner.run(WorkOrder("c1/x", 1, "train", params, {})):
                    pass
    assert heard.pop(MICRO_BATCH_FILE) == str(two.state_dir.root / "micro_batches.json")
    assert heard.keys().isdisjoint(params)


def run_of(node: Node, name: str) -> CycleState:
    return next(run for run, data in data_sets(node.replica.state) if data.name == name)


def offered(folder: Path, *folders: Path) -> OfferedPaths:
    return OfferedPaths(folder / "asked_paths.json", folders)


def is_read(paths: OfferedPaths, task: str, params: Mapping[str, Any]) -> bool:
    try:
        paths.check(task, params, "one", "two")
    except NotOfferedError:
        return False
    return True


def test_neither_links_nor_dots_get_out(tmp_path: Path, diary: Path) -> None:
    shared = tmp_path / "shared"
    (shared / "text").mkdir(parents=True)
    (shared / "out").symlink_to(diary)
    (tmp_path / "other").symlink_to(shared)
    paths = offered(tmp_path, tmp_path / "other")
    for inside in ("text", "text/../text", "not-there-yet", "."):
        assert is_read(paths, "prepare", prepare(shared / inside).params), inside
    for outside in ("out", "out/monday.txt", "../ada/diary", "text/../../ada", "../shared-too"):
        assert not is_read(paths, "prepare", prepare(f"{shared}/{outside}").params), outside


def test_a_path_that_leads_elsewhere_by_now_is_not_what_was_asked_for(
    tmp_path: Path, diary: Path
) -> None:
    (tmp_path / "mine").mkdir()
    latest = tmp_path / "latest"
    latest.symlink_to(tmp_path / "mine")
    paths = offered(tmp_path)
    paths.ask([str(latest)])
    assert is_read(paths, "prepare", prepare(latest).params)
    assert not is_read(paths, "prepare", prepare(tmp_path / "mine").params), "word for word"
    latest.unlink()
    latest.symlink_to(diary)
    assert not is_read(paths, "prepare", prepare(latest).params)
    paths.ask([str(latest)])
    assert is_read(offered(tmp_path), "prepare", prepare(latest).params), "asked for anew"


def test_who_asks_for_a_lone_file_of_a_folder_offers_nothing_beside_it(
    tmp_path: Path, diary: Path
) -> None:
    def collect(glob: str) -> dict[str, Any]:
        return {"source": {"kind": "folder", "path": str(diary), "glob": glob}}

    paths = offered(tmp_path)
    paths.ask(local_paths("collect", collect("monday.txt")))
    assert is_read(paths, "collect", collect("monday.txt"))
    for glob in ("*", "tuesday.txt", "{monday,tuesday}.txt", "**/*", "/", "../diary/tuesday.txt"):
        assert not is_read(paths, "collect", collect(glob)), glob
    assert not is_read(paths, "prepare", prepare(diary, glob="monday.txt").params)
    assert not is_read(paths, "prepare", prepare(diary).params)
    paths.ask([str(diary)])
    assert is_read(paths, "collect", collect("monday.txt")), "asked for in an earlier version"


@pytest.mark.parametrize(
    ("task", "params"),
    [
        ("collect", {"source": {"kind": "folder", "path": "{}"}}),
        ("collect", {"source": {"kind": "folder", "path": "{}", "glob": "monday.txt"}}),
        ("collect", {"source": {"kind": "jsonl", "path": "{}/a.jsonl"}}),
        ("collect", {"source": {"kind": "parquet", "path": "{}/a.parquet"}}),
        ("collect", {"source": {"kind": "git", "url": "file://{}"}}),
        ("collect", {"source": {"kind": "git", "url": "file:///%2e%2e{}"}}),
        ("collect", {"source": {"kind": "hugging_face", "path": "{}"}}),
        ("collect", {"source": {"kind": "of tomorrow", "path": "{}"}}),
        ("prepare", {"kind": "folder", "path": "{}"}),
        ("prepare", {"kind": "folder", "path": b"/etc"}),
        ("prepare", {"kind": "folder", "path": "~root/.ssh"}),
        ("prepare", {"kind": "folder", "path": "relative/path"}),
        ("prepare", {"kind": "hugging_face", "path": "{}"}),
        ("prepare", {"kind": "hugging_face", "path": "org/name", "tokenizer_path": "{}"}),
    ],
)
def test_every_path_of_every_order_needs_consent(
    task: str, params: dict[str, Any], tmp_path: Path, diary: Path
) -> None:
    def filled(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: filled(each) for name, each in value.items()}
        return value.format(diary) if isinstance(value, str) else value

    assert not is_read(offered(tmp_path, tmp_path / "shared"), task, filled(params))


@pytest.mark.parametrize(
    ("task", "params"),
    [
        ("collect", {"source": {"kind": "python_stdlib"}}),
        ("collect", {"source": {"kind": "web", "urls": ["https://a.org"]}}),
        ("collect", {"source": {"kind": "git", "url": "https://a.org/b.git"}}),
        ("collect", {"source": {"kind": "hugging_face", "path": "org/name"}}),
        ("prepare", {"kind": "hugging_face", "path": "org/name"}),
        ("clean", {}),
    ],
)
def test_what_is_on_no_disk_needs_none(task: str, params: dict[str, Any], tmp_path: Path) -> None:
    assert is_read(offered(tmp_path), task, params)


def test_a_folder_in_the_place_of_a_data_set_of_the_hub_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its library prefers one below the working folder, which is the daemon's state folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "store").mkdir()
    paths = offered(tmp_path)
    paths.ask(["store"])
    assert not is_read(paths, "prepare", {"kind": "hugging_face", "path": "store"})


@pytest.mark.parametrize(
    ("params", "hint"),
    [
        ({"kind": "folder", "path": "notes"}, "name it in full, as it is called on two, from / on"),
        ({"kind": "hugging_face", "path": "org/set"}, "rename org/set there"),
        ({"kind": "folder", "path": "/a"}, "or add to its jupiter.yaml: readable_folders: [/a]"),
    ],
)
def test_the_hint_of_a_refusal_helps(
    params: dict[str, Any], hint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "org" / "set").mkdir(parents=True)
    with pytest.raises(NotOfferedError) as refused:
        offered(tmp_path).check("prepare", params, "one", "two")
    assert refused.value.hint.endswith(hint)


def test_commands_and_work_ask_at_once(tmp_path: Path) -> None:
    """They come from threads, and health is looked at meanwhile."""
    paths = offered(tmp_path)

    def ask(number: int) -> None:
        paths.ask([f"/asked/{number}"])
        for each in range(25):
            assert not is_read(paths, "prepare", prepare(f"/other/{number}/{each}").params)
            list(paths.findings(NodeId("n"), "two"))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(16)))
    assert offered(tmp_path)._requested.keys() == {f"/asked/{number}" for number in range(16)}
    (found,) = paths.findings(NodeId("n"), "two")
    assert found.detail.endswith(f"{16 * 25 - 1:,} other paths")


def test_refusals_are_told_for_an_hour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = offered(tmp_path)
    for path in ("/a", "/b", "/b"):
        assert not is_read(paths, "prepare", prepare(path).params)
    (found,) = paths.findings(NodeId("n"), "two")
    assert found.detail == "/b for one, and 1 other path"
    later = now_s() + 3601
    monkeypatch.setattr("jupiterd.daemon.executor.offered_paths.now_s", lambda: later)
    assert list(paths.findings(NodeId("n"), "two")) == []


def test_a_file_that_cannot_be_read_allows_nothing(tmp_path: Path) -> None:
    for text in ("", "[]", '{"paths": 1}', '{"paths": {"/a": 1}}', "\0"):
        (tmp_path / "asked_paths.json").write_text(text)
        assert not is_read(offered(tmp_path), "prepare", prepare("/a").params)


@pytest.mark.net
async def test_a_command_reads_where_it_was_typed_and_nowhere_else(
    tmp_path: Path, diary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever leads: the machine that reads is another one than the one that orders it."""
    (diary / "tuesday.txt").write_text(SECRET[::-1])
    source = {"kind": "folder", "path": str(diary), "vocab_size": 300, "holdout": 0.0}
    async with members(tmp_path) as (one, two):
        await lead(one)
        take_for_alive(one, two)
        two.heartbeats.election._leader = one.identity.node_id
        everybody = [one.identity.node_id, two.identity.node_id]
        monkeypatch.setattr(Machines, "fit_nodes", lambda _: everybody)  # no heartbeats here
        at_two = {"source": source, "node": two.identity.node_id}
        await one.commands.execute("data.prepare", {**at_two, "name": "stolen"})
        await until(lambda: run_of(one, "stolen").failed is not None)
        await two.commands.execute("data.prepare", {**at_two, "name": "own"})
        await until(lambda: run_of(one, "own").prepared is not None)
        stolen, own = run_of(one, "stolen"), run_of(one, "own")
    assert stolen.failed is not None
    assert f"two doesn't read {diary} for one: nobody on two" in stolen.failed.message
    assert asking_node(stolen) == one.identity.node_id
    assert asking_node(own) == two.identity.node_id
    assert own.prepared is not None
    assert own.prepared.node == two.identity.node_id
