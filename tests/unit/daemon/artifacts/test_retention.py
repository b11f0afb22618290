"""When old checkpoints go from a node's disk."""

import os
import threading
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from jupiterd.cluster.artifacts.retention import RETAINED_STEPS, strays
from jupiterd.cluster.facts.facts import Fact, UnknownFact
from jupiterd.cluster.ledger.lww_registers import fact_hash
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.artifacts import retention as retention_module
from jupiterd.daemon.artifacts.curve_retention import SAVED_RUNS, remove_old
from jupiterd.daemon.artifacts.retention import (
    GRACE_S,
    PSEUDO_GRADIENT_GRACE_S,
    STRAY_PART_S,
    STRAY_S,
    Retention,
)
from jupiterd.daemon.runtime.clock import wall_s
from jupiterd.ids import ArtifactId, short
from jupiterd.protocol.checkpoint_part import DATA_FILE, DESCRIPTION_FILE
from tests.support.cluster.building import (
    checkpoint,
    data_asked,
    outer_step,
    pinned,
    started,
    training,
    work_done,
)
from tests.support.daemon.two_nodes import found, serving


def taken_in(node: Node, folder: Path, count: int) -> list[ArtifactId]:
    made: list[ArtifactId] = []
    for number in range(count):
        file = folder / f"weights-{number}"
        file.write_text(str(number))
        made.append(node.artifact_cache.store.ingest(file))
    return made


def left_unused(node: Node) -> None:
    """Let everything that is here have been made, and used last, before the grace."""
    at_s = wall_s() - GRACE_S - 60
    for artifact in node.artifact_cache.store.ids():
        os.utime(node.artifact_cache.store.path(artifact).parent, (at_s, at_s))


async def test_old_checkpoints_go_after_the_grace_and_nothing_else(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        *line, other = taken_in(one, tmp_path, 7)
        left_unused(one)
        parents = ["", *line]
        facts = [
            checkpoint(artifact, parents[number], tokens=100 + number)
            for number, artifact in enumerate(line)
        ]
        await found(one, facts=(data_asked(), training(), *facts))
        store = one.artifact_cache.store
        retention = Retention(one.replica, store, one.state_dir)
        await retention.look(0.0)
        await retention.look(GRACE_S - 1)
        assert set(store.ids()) == {*line, other}
        await one.replica.append(2, [pinned(line[1])])  # needed again, and no more
        await retention.look(GRACE_S)
        assert set(store.ids()) == {*line[1:2], *line[3:], other}


async def test_what_islands_sent_each_other_goes_within_minutes(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        (way,) = taken_in(one, tmp_path, 1)
        left_unused(one)
        first = replace(outer_step(0), pseudo_gradients=(way,))
        steps = [first]
        for number in range(1, RETAINED_STEPS + 1):
            steps.append(replace(outer_step(number, fact_hash(steps[-1])), pseudo_gradients=()))
        await found(one, facts=(data_asked(), training(), *steps[:-1]))
        store = one.artifact_cache.store
        retention = Retention(one.replica, store, one.state_dir)
        await retention.look(0.0)
        await one.replica.append(2, steps[-1:])
        await retention.look(PSEUDO_GRADIENT_GRACE_S)
        assert store.holds(way), "until a moment ago it was needed"
        await retention.look(2 * PSEUDO_GRADIENT_GRACE_S)
        assert not store.holds(way)


async def test_what_no_fact_names_goes_a_day_after_its_last_use_and_nothing_named(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, "one") as one:
        store, at_s = one.artifact_cache.store, wall_s()
        shard, weights, model, stray, used, young = taken_in(one, tmp_path, 6)
        retention = Retention(one.replica, store, one.state_dir)
        everything = set(store.ids())
        for artifact in everything - {young}:
            os.utime(store.path(artifact).parent, (at_s - STRAY_S - 9,) * 2)
        await found(one)
        await retention.look_at_strays(at_s)
        await retention.look_at_strays(at_s)
        assert set(store.ids()) == everything  # a cluster that never worked may be the wrong one
        outputs = {"shards": shard}
        summary = {"begun from": f"weights {weights}"}
        done = replace(work_done("pack"), outputs=outputs, summary=summary)
        await one.replica.append(1, [data_asked(), training(), done, checkpoint(model)])
        await retention.look_at_strays(at_s)
        assert set(store.ids()) == everything  # it may be named a moment later
        await one.artifact_cache.ensure(used)
        await retention.look_at_strays(at_s)
        assert set(store.ids()) == everything - {stray}


async def test_nothing_is_stray_while_some_fact_cannot_be_read_here(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        (artifact,) = taken_in(one, tmp_path, 1)
        os.utime(one.artifact_cache.store.path(artifact).parent, (0, 0))
        await found(one, facts=(data_asked(), training(), UnknownFact("Later", 9, {})))
        retention = Retention(one.replica, one.artifact_cache.store, one.state_dir)
        for _ in range(3):
            await retention.look_at_strays(wall_s())
        assert one.artifact_cache.store.holds(artifact)


async def test_a_fetch_that_nobody_goes_on_with_goes_after_a_day(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        store = one.artifact_cache.store
        (artifact,) = taken_in(one, tmp_path, 1)
        manifest_bytes = store.manifest_bytes(artifact)
        store.remove(artifact)
        partial = store.begin(manifest_bytes)
        retention = Retention(one.replica, store, one.state_dir)
        await retention.look_at_strays(wall_s())
        assert list((one.state_dir.store / "partial").iterdir())
        with store.grown(partial, manifest_bytes):
            await retention.look_at_strays(wall_s() + 2 * STRAY_S)
            assert list((one.state_dir.store / "partial").iterdir())
        await retention.look_at_strays(wall_s() + 2 * STRAY_S)
        assert not list((one.state_dir.store / "partial").iterdir())


async def test_what_is_set_aside_of_something_named_stays_however_old(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        store = one.artifact_cache.store
        named, unnamed = taken_in(one, tmp_path, 2)
        await found(one, facts=(data_asked(), training(), checkpoint(named)))
        for artifact in (named, unnamed):
            store.set_aside(artifact)
        retention = Retention(one.replica, store, one.state_dir)
        await retention.look_at_strays(wall_s() + 2 * STRAY_S)
        assert store.partial_ids() == [named]


async def test_what_is_named_or_made_anew_while_strays_go_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path, "one") as one:
        store, at_s = one.artifact_cache.store, wall_s()
        left_over = sorted(taken_in(one, tmp_path, 4))
        for artifact in left_over:
            os.utime(store.path(artifact).parent, (at_s - STRAY_S - 9,) * 2)
        await found(one, facts=(data_asked(), training()))
        retention = Retention(one.replica, store, one.state_dir)
        await retention.look_at_strays(at_s)
        remove = retention._remove
        spared: set[ArtifactId] = set()

        async def remove_and_name_others(artifact: ArtifactId, before_s: float) -> None:
            await remove(artifact, before_s)
            if not spared:
                left = store.ids()
                await one.replica.append(1, [checkpoint(left[0])])
                os.utime(store.path(left[1]).parent)
                spared.update(left[:2])

        monkeypatch.setattr(retention, "_remove", remove_and_name_others)
        await retention.look_at_strays(at_s)
        assert set(store.ids()) == spared


async def test_facts_are_searched_for_names_beside_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(data_asked(), training()))
        searching: set[threading.Thread] = set()

        def noting(held: Iterable[ArtifactId], facts: Iterable[Fact]) -> frozenset[ArtifactId]:
            searching.add(threading.current_thread())
            return strays(held, facts)

        monkeypatch.setattr("jupiterd.daemon.artifacts.retention.strays", noting)
        await Retention(one.replica, one.artifact_cache.store, one.state_dir).look_at_strays(
            wall_s()
        )
        assert searching
        assert threading.main_thread() not in searching


async def test_what_workers_left_goes_while_the_daemon_runs(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        scratch = one.state_dir.scratch
        retention = Retention(one.replica, one.artifact_cache.store, one.state_dir)
        for name in ("old", "new"):
            (scratch / name).mkdir(parents=True)
        os.utime(scratch / "old", (0, 0))
        await retention.look_at_scratch()
        assert [left.name for left in scratch.iterdir()] == ["new"]
        (scratch / "new").rmdir()
        scratch.rmdir()
        await retention.look_at_scratch()  # which somebody has removed: no reason to end


def curve(curves: Path, name: str, age_s: int) -> Path:
    folder = curves / name
    folder.mkdir(parents=True)
    file = folder / "metrics.jsonl"
    file.write_text("{}")
    for path in (file, folder):
        os.utime(path, (1_000_000 - age_s,) * 2)
    return folder


def test_the_newest_curves_are_kept_by_when_they_were_last_written(tmp_path: Path) -> None:
    folders = [curve(tmp_path, f"run{age}", age) for age in range(5)]
    os.utime(folders[4] / "metrics.jsonl", (2_000_000,) * 2)
    assert sorted(remove_old(tmp_path, frozenset(), saved=3)) == ["run2", "run3"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run0", "run1", "run4"]
    assert remove_old(tmp_path / "none", frozenset()) == []


def test_curves_of_islands_are_as_new_as_the_last_of_them(tmp_path: Path) -> None:
    run, other = curve(tmp_path, "run", 90), curve(tmp_path, "other", 50)
    for number, age_s in ((1, 80), (2, 10)):
        curve(run, f"island-{number}", age_s)
    os.utime(run, (1_000_000 - 90,) * 2)
    assert remove_old(tmp_path, frozenset(), saved=1) == [other.name]


def test_a_link_among_the_curves_leads_to_nothing_that_goes(tmp_path: Path) -> None:
    mine = curve(tmp_path / "elsewhere", "mine", 9)
    (tmp_path / "curves").mkdir()
    (tmp_path / "curves" / "link").symlink_to(mine, target_is_directory=True)
    assert remove_old(tmp_path / "curves", frozenset(), saved=0) == []
    assert (mine / "metrics.jsonl").exists()


async def test_curves_of_a_run_that_goes_on_are_kept_however_old(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        run = data_asked().cycle
        await found(one, facts=(data_asked(), training()))
        curves = one.state_dir.curves
        curve(curves, short(run), age_s=10_000)
        others = [curve(curves, f"other{age}", age) for age in range(SAVED_RUNS + 2)]
        await Retention(one.replica, one.artifact_cache.store, one.state_dir).look_at_curves()
        assert (curves / short(run)).exists()
        assert [path.exists() for path in others] == [True] * SAVED_RUNS + [False] * 2


def two_rounds(clean: ArtifactId) -> tuple[Fact, ...]:
    """Return what tells of two packed rounds, the first of which cleaned a batch."""
    rounds = [replace(work_done(f"r{n}/pack/0", round_number=n), phase="pack") for n in (1, 2)]
    return (started(), replace(work_done("r1/filter/1"), outputs={"clean": clean}), *rounds)


async def test_what_went_and_is_made_anew_waits_for_the_fact_that_names_it(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        (clean,) = taken_in(one, tmp_path, 1)
        left_unused(one)
        await found(one, facts=two_rounds(clean))
        store = one.artifact_cache.store
        retention = Retention(one.replica, store, one.state_dir, rounds_kept=1)
        await retention.look(0.0)
        await retention.look(GRACE_S)
        assert not store.holds(clean)
        assert taken_in(one, tmp_path, 1) == [clean]  # by a newer round, whose fact isn't here yet
        await retention.look(GRACE_S + 60)
        await retention.look(2 * GRACE_S + 60)  # by the clock of looks alone it would be due
        assert store.holds(clean)
        left_unused(one)
        await retention.look(2 * GRACE_S + 120)
        assert not store.holds(clean)


async def test_nothing_of_old_rounds_goes_while_some_fact_cannot_be_read_here(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, "one") as one:
        (clean,) = taken_in(one, tmp_path, 1)
        left_unused(one)
        await found(one, facts=(*two_rounds(clean), UnknownFact("Later", 9, {})))
        retention = Retention(one.replica, one.artifact_cache.store, one.state_dir, rounds_kept=1)
        await retention.look(0.0)
        await retention.look(GRACE_S)
        assert one.artifact_cache.store.holds(clean)
        one.replica.state._unknown.facts.clear()  # as if this version understood it
        await retention.look(0.0)
        await retention.look(GRACE_S)
        assert not one.artifact_cache.store.holds(clean)


async def test_what_is_needed_is_worked_out_again_only_once_the_ledger_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=two_rounds(ArtifactId("0" * 64)))
        times = {"unneeded": 0, "outlived": 0}

        def counted(name: str) -> None:
            work_out = getattr(retention_module, name)

            def count(*arguments: object) -> frozenset[ArtifactId]:
                times[name] += 1
                return work_out(*arguments)

            monkeypatch.setattr(retention_module, name, count)

        for name in times:
            counted(name)
        retention = Retention(one.replica, one.artifact_cache.store, one.state_dir)
        for at_s in range(3):
            await retention.look(float(at_s))
        assert times == {"unneeded": 1, "outlived": 1}
        await one.replica.append(1, [data_asked()])
        await retention.look(3.0)
        assert times == {"unneeded": 2, "outlived": 2}


async def test_parts_of_checkpoints_that_nobody_puts_together_go_within_hours(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, "one") as one:
        store, at_s = one.artifact_cache.store, wall_s()
        left, needed, young = (part_in(one, tmp_path, step) for step in range(3))
        (other,) = taken_in(one, tmp_path, 1)
        for artifact in (left, needed, other):
            os.utime(store.path(artifact).parent, (at_s - STRAY_PART_S - 9,) * 2)
        await found(one, facts=(data_asked(), training()))
        retention = Retention(one.replica, store, one.state_dir)
        retention.kept_parts = lambda: {needed}
        await retention.look_at_strays(at_s)
        assert set(store.ids()) == {needed, young, other}


def part_in(node: Node, folder: Path, step: int) -> ArtifactId:
    place = folder / f"part-{step}"
    place.mkdir()
    for file in (DESCRIPTION_FILE, DATA_FILE):
        (place / file).write_text(str(step))
    return node.artifact_cache.store.ingest(place)
