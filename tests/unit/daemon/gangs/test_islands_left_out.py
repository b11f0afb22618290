"""Islands whose ways the leader leaves out for what they have: another model, or other weights."""

from array import array
from pathlib import Path

import pytest

from jupiterd.cluster.facts.facts import CheckpointCommitted
from jupiterd.cycle.islands.outer_orders import ADRIFT, STRANGER
from jupiterd.daemon.gangs.island_reseed import IslandReseed
from jupiterd.daemon.islands import final_weights
from jupiterd.daemon.islands.final_weights import FinalWeights
from jupiterd.daemon.leader.term_services import TermServices
from jupiterd.errors import IslandLeftOutError
from jupiterd.ids import ArtifactId, CycleId
from tests.support.cluster.building import CYCLE
from tests.support.daemon.two_nodes import until
from tests.unit.daemon.islands.test_island_coordinator import (
    BATCH,
    ELSEWHERE,
    EVERY,
    SETTINGS,
    coordinating,
    islands,
    line,
    reach,
    say,
    trains,
)


def listened(leading: TermServices, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what people are told from now on."""
    explained, explain = list[str](), leading.board.explain

    def listen(cycle: CycleId, text: str) -> None:
        explained.append(text)
        explain(cycle, text)

    monkeypatch.setattr(leading.board, "explain", listen)
    return explained


async def test_an_island_that_trains_another_model_is_not_let_in_and_people_are_told_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with trains(tmp_path, monkeypatch) as (leading, _), coordinating(leading):
        explained = listened(leading, monkeypatch)
        one, other = sorted(each.cycle for each in islands(leading))
        say(leading, one, logits=array("f", [0.5, 0.25]).tobytes())
        say(leading, other, logits=array("f", [0.5, 0.0]).tobytes())
        await until(lambda: len(line(leading)) > 1)
        first, then = line(leading)
        assert (then.islands, then.batches) == ((one,), {one: BATCH})
        assert then.left_out == {other: STRANGER}
        assert then.positions[one].startswith(first.positions[other])
        failed = leading.term.cycle(other).failed
        assert failed is not None
        assert (
            "its logits are 0.25 off those of the others, and 0.0001 is allowed" in failed.message
        )
        assert "jupiterctl version" in failed.hint
        (told_at_once,) = [text for text in explained if "isn't let in" in text]
        assert told_at_once.endswith(failed.message)
        await until(lambda: "outer step 1: 1 of 2 islands, one is not let in" in explained)
        say(leading, one, logits=array("f", [9.0, 9.0]).tobytes())
        await until(lambda: len(line(leading)) > 2)
        assert line(leading)[2].islands == (one,), "whoever is in isn't looked at again"


async def test_an_island_whose_weights_are_not_those_of_the_others_is_left_out_until_it_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_three = trains(tmp_path, monkeypatch, has_third=True)
    async with of_three as (leading, _), coordinating(leading):
        explained = listened(leading, monkeypatch)
        first, *rest = sorted(each.cycle for each in islands(leading))
        reach(leading, first, 0)
        say(leading, first, digest=b"other", logits=array("f", [9.0]).tobytes())
        for island in rest:
            say(leading, island, digest=b"right", logits=array("f", [0.5]).tobytes())
        await until(lambda: len(line(leading)) > 1)
        begun, then = line(leading)
        assert then.islands == tuple(rest)
        assert then.left_out == {first: ADRIFT}
        assert set(then.batches) == {*rest}, "it has to get the weights of the others first"
        assert then.positions[rest[0]].startswith(begun.positions[first])
        assert leading.term.cycle(first).failed is None, "its model is that of the others"
        (told_at_once,) = [text for text in explained if ADRIFT in text]
        assert told_at_once.startswith("island ")
        await until(lambda: "outer step 1: 2 of 3 islands, one is adrift" in explained)
        reach(leading, first, 1)
        for number in (2, 3):
            for island in line(leading)[-1].batches:
                say(leading, CycleId(island), digest=b"right")
            await until(lambda number=number: len(line(leading)) > number)
        assert line(leading)[3].islands == (first, *rest)
        assert not line(leading)[3].left_out


@pytest.mark.parametrize("sync", ["blocking", "overlapped"])
async def test_the_gang_of_an_island_whose_weights_are_not_those_of_the_others_begins_anew(
    sync: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with trains(tmp_path, monkeypatch, sync=sync) as (leading, _), coordinating(leading):
        one, other = sorted(each.cycle for each in islands(leading))
        anew = IslandReseed(leading.term, leading.board, leading.reach, other, CYCLE)
        model = ArtifactId("a" * 64)
        saved = CheckpointCommitted(one, 1, "", model, 1, 12, 9, 9, 2.5, is_final=False)
        await leading.term.record(saved)
        anew.check()
        say(leading, one, digest=b"right")
        say(leading, other, digest=b"other")
        await until(lambda: bool(line(leading)[-1].left_out))
        assert line(leading)[-1].left_out == {other: ADRIFT}, "of two, the first one is believed"
        IslandReseed(leading.term, leading.board, leading.reach, one, CYCLE).check()
        with pytest.raises(IslandLeftOutError) as raised:
            anew.check()
        assert await anew.begin("", raised.value)
        begun = leading.term.cycle(other).last_checkpoint(1)
        assert begun is not None
        assert (begun.artifact, begun.step) == (model, 12)
        anew.check()


async def test_who_stood_at_another_outer_step_or_tells_nothing_is_not_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_three = trains(tmp_path, monkeypatch, has_third=True)
    async with of_three as (leading, _), coordinating(leading):
        one, other, third = sorted(each.cycle for each in islands(leading))
        say(leading, one, digest=b"right")
        say(leading, other, digest=b"other", stands_at="of another line")
        say(leading, third)
        await until(lambda: len(line(leading)) > 1)
        assert line(leading)[1].islands == (one, other, third)


async def test_last_weights_of_an_island_that_was_adrift_count_where_no_other_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, look = list[None](), FinalWeights._found

    def look_and_count(final: FinalWeights) -> CheckpointCommitted | None:
        looks.append(None)
        return look(final)

    monkeypatch.setattr(FinalWeights, "_found", look_and_count)
    monkeypatch.setitem(SETTINGS, "max_steps", EVERY)
    of_two = trains(tmp_path, monkeypatch, second=ELSEWHERE)
    async with of_two as (leading, _):
        alive = {leading.term.self_id, ELSEWHERE}
        leading.machines.alive = lambda: frozenset(alive)
        async with coordinating(leading) as task:
            there = {each.nodes[0]: each.cycle for each in islands(leading)}
            first = min(there.values())
            for island in there.values():
                say(leading, island, digest=b"right" if island == first else b"other")
            await until(lambda: len(line(leading)) > 1)
            (apart,) = line(leading)[-1].left_out
            model = ArtifactId("a" * 64)
            final = CheckpointCommitted(
                CycleId(apart), 1, "", model, 4, EVERY, 9, 9, 2.5, is_final=True
            )
            await leading.term.record(final)
            looks.clear()
            await until(lambda: len(looks) > 1 or task.done())
            assert not task.done(), "the other one has what all have"
            alive.discard(next(node for node, island in there.items() if island == first))
            looks.clear()
            await until(lambda: len(looks) > 1 or task.done())
            assert not task.done(), "who is away often comes back"
            monkeypatch.setattr(final_weights, "LOST_GRACE_S", 0.0)
            await task
            last = leading.term.cycle(CYCLE).last_checkpoint(1)
            assert last is not None
            assert last.artifact == model
