"""How fast a model wrote, read from what cycles before have recorded."""

from dataclasses import replace
from typing import Any

import pytest

from jupiterd.cluster.facts.facts import WorkCompleted
from jupiterd.cluster.ledger.cycle_state import CycleFact
from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.planning.placement import Seat
from jupiterd.cluster.planning.roles import Role
from jupiterd.daemon.planning.generation_speed import written_before
from tests.support.cluster.building import CYCLE, NODES, started
from tests.support.daemon.term_parts import FakeMachines, FakePlacement, FakeTerm
from tests.unit.daemon.queries.cycle.test_cycle_document import folded

FOLDER = {"name": "talker", "artifact": "ab" * 32}
SERVER = {"name": "oak", "url": "http://box/v1", "model": "oak"}


def wrote(item: int, by: str, tokens: int, **counts: float) -> CycleFact:
    did = {"prompts": 12.0, "kept": 2.0, "tokens": float(tokens), "writing_s": 100.0, **counts}
    name = f"r1/generate/{item}"
    return WorkCompleted(CYCLE, 1, "generate", name, NODES[0], {}, did, {"generator": by})


def known(generator: dict[str, Any], *facts: CycleFact) -> tuple[State, FakePlacement]:
    term = FakeTerm()
    term.state.cycles[CYCLE] = folded(replace(started(rounds=1), generator=generator), *facts)
    seats = [Seat(node, Role.HYBRID, True, 0) for node in NODES[:2]]
    return term.state, FakePlacement(FakeMachines(), seats)


@pytest.mark.parametrize("named", ["talker", "./models/talker/", "ORG/talker", "ab" * 32])
def test_all_machines_write_at_once_as_fast_as_one_did(named: str) -> None:
    student = wrote(3, "c" * 64, 90_000)
    leading = known(FOLDER, wrote(1, "ab" * 32, 300), wrote(2, "ab" * 32, 700), student)
    assert written_before(*leading, named) == {
        "tokens_per_s": 10.0,
        "tokens_each": 50,
    }


def test_a_server_writes_for_all_of_them_together() -> None:
    leading = known(SERVER, wrote(1, "http://box/v1#oak", 300))
    assert written_before(*leading, "http://box/v1#oak")["tokens_per_s"] == 3.0


def test_nothing_is_known_of_who_has_not_written() -> None:
    leading = known(FOLDER, wrote(1, "ab" * 32, 0, writing_s=0.0))
    assert [written_before(*leading, named) for named in ("talker", "oak", "")] == [{}, {}, {}]
