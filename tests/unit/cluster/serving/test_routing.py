"""Who answers a request for a model, and what is said where nobody can."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cluster.serving.routing import Lack, NoRoute, Route, ServingNode, route
from jupiterd.cluster.serving.served_model import ServedModel
from jupiterd.cluster.serving.serving_rows import ModelLoad, NodeServing
from jupiterd.ids import ArtifactId, NodeId

NEW, OLD = ArtifactId("a" * 64), ArtifactId("b" * 64)
PROMOTED = ServedModel("promoted", NEW)
RUN = ServedModel("first-run", NEW)


def node(name: str, *loads: ModelLoad, says: NodeServing | None = None, **more: Any) -> ServingNode:
    serving = replace(says or NodeServing(), models=loads)
    return ServingNode(NodeId(name), name, serving=serving, **more)


TRAINS = NodeServing(trains=True)
PINNED = NodeServing(trains=True, is_pinned=True)


def ready(
    running: int = 0, *, of: ArtifactId = NEW, tokens_per_s: float | None = None
) -> ModelLoad:
    return ModelLoad("promoted", of, running=running, tokens_per_s=tokens_per_s)


def chosen(*nodes: ServingNode, model: ServedModel = PROMOTED) -> Route:
    found = route(model, nodes)
    assert isinstance(found, Route), found
    return found


def refused(*nodes: ServingNode, model: ServedModel = PROMOTED) -> NoRoute:
    found = route(model, nodes)
    assert isinstance(found, NoRoute), found
    return found


def test_of_two_that_have_it_ready_the_one_with_fewer_requests_answers() -> None:
    assert chosen(node("a", ready(3)), node("b", ready(1))).node == "b"


def test_requests_that_others_have_not_told_of_yet_count() -> None:
    assert chosen(node("a", ready(0), in_flight=4), node("b", ready(1))).node == "b"


def test_a_faster_one_with_more_requests_comes_first() -> None:
    fast, slow = ready(3, tokens_per_s=400.0), ready(1, tokens_per_s=20.0)
    assert chosen(node("a", slow), node("b", fast)).node == "b"


def test_an_accelerator_that_nobody_has_measured_is_tried() -> None:
    measured = node("a", ready(1, tokens_per_s=500.0))
    assert chosen(measured, node("b", ready(), has_accelerator=True)).node == "b"


def test_the_asking_node_spares_the_way_if_all_else_is_equal() -> None:
    assert chosen(node("a", ready()), node("b", ready(), is_own=True)).node == "b"


def test_who_has_the_new_model_comes_before_who_still_has_the_old() -> None:
    assert chosen(node("a", ready(0, of=OLD)), node("b", ready(5))).node == "b"


def test_who_still_has_the_old_one_answers_for_the_name_that_follows() -> None:
    assert not chosen(node("a", ready(of=OLD)), node("b", holds=True)).must_load


def test_another_model_of_the_same_name_is_not_taken_for_a_name_that_stays() -> None:
    other = node("a", ModelLoad("first-run", OLD))
    assert chosen(other, node("b", holds=True), model=RUN).node == "b"


def test_a_model_goes_by_its_artifact_whatever_another_node_calls_it() -> None:
    assert chosen(node("a", ready()), node("b", holds=True), model=RUN).node == "a"


def test_one_that_loads_it_comes_before_another_load() -> None:
    loading = ModelLoad("promoted", NEW, is_ready=False)
    found = chosen(node("a", loading), node("b", holds=True, has_accelerator=True))
    assert (found.node, found.must_load) == ("a", True)


def test_who_has_the_files_comes_before_a_gpu_that_must_fetch_them() -> None:
    found = chosen(node("a", has_accelerator=True), node("b", holds=True))
    assert (found.node, found.must_load, found.must_fetch) == ("b", True, False)


def test_of_those_that_have_the_files_an_accelerator_comes_first() -> None:
    found = chosen(node("a", holds=True), node("b", holds=True, has_accelerator=True))
    assert found.node == "b"


def test_who_has_no_engine_gives_its_files_to_one_that_has() -> None:
    found = chosen(node("a", holds=True, can_compute=False), node("b"))
    assert (found.node, found.must_fetch) == ("b", True)


def test_a_folder_is_answered_on_its_own_machine() -> None:
    folder = ServedModel("mine", None, "/models/mine")
    there = node("a", ModelLoad("mine", None), has_accelerator=True)
    found = chosen(there, node("b", is_own=True), model=folder)
    assert (found.node, found.must_fetch) == ("b", False)


def test_a_model_on_a_machine_that_sleeps_is_said_to_be_there() -> None:
    asleep = node("nuc", holds=True, absence="sleeps since 21:14")
    found = refused(asleep, node("b"))
    assert found.lack is Lack.AWAY
    assert found.message == "promoted is only on nuc, which sleeps since 21:14"
    assert found.hint == "wake it"


def test_whoever_may_have_it_is_named_where_nobody_knows() -> None:
    found = refused(node("nuc", absence="doesn't answer"), node("b"))
    assert (found.lack, found.message) == (
        Lack.AWAY,
        "no machine that answers has promoted: nuc doesn't answer",
    )


def test_a_gpu_that_trains_is_left_to_its_training() -> None:
    found = refused(node("studio", ready(), has_accelerator=True, says=TRAINS))
    assert found.lack is Lack.BUSY
    assert "studio trains" in found.message
    assert found.retry_after_s > 0


def test_a_gpu_that_trains_answers_where_its_owner_has_pinned_the_model() -> None:
    both = node("studio", ready(), has_accelerator=True, says=PINNED)
    assert chosen(both).node == "studio"


def test_a_processor_answers_while_the_gpu_trains() -> None:
    gpu = node("a", ready(), has_accelerator=True, says=TRAINS)
    assert chosen(gpu, node("b", holds=True)).node == "b"


def test_nobody_with_an_engine_says_what_to_install() -> None:
    assert refused(node("a", holds=True, can_compute=False)).lack is Lack.NO_ENGINE


def test_a_model_that_nobody_has_is_unknown() -> None:
    assert refused(node("a"), node("b")).lack is Lack.UNKNOWN


def test_drained_machines_are_named() -> None:
    found = refused(node("a", holds=True, is_drained=True))
    assert (found.lack, "a is drained" in found.message) == (Lack.BUSY, True)


NAMES = st.sampled_from("abcdefgh")
LOADS = st.builds(
    ModelLoad,
    name=st.sampled_from(["promoted", "first-run"]),
    artifact=st.sampled_from([NEW, OLD]),
    is_ready=st.booleans(),
    running=st.integers(0, 20),
    queued=st.integers(0, 20),
    tokens_per_s=st.none() | st.floats(0, 1000),
)
NODES = st.lists(
    st.builds(
        ServingNode,
        node=NAMES.map(NodeId),
        name=NAMES,
        absence=st.sampled_from(["", "sleeps since 21:14"]),
        is_own=st.booleans(),
        is_drained=st.booleans(),
        can_compute=st.booleans(),
        has_accelerator=st.booleans(),
        serving=st.builds(
            NodeServing,
            models=st.lists(LOADS, max_size=3).map(tuple),
            is_open=st.booleans(),
            is_pinned=st.booleans(),
            trains=st.booleans(),
        ),
        holds=st.booleans(),
        in_flight=st.integers(0, 20),
    ),
    max_size=6,
    unique_by=lambda each: each.node,
)
MODELS = st.sampled_from([PROMOTED, RUN])


@given(NODES, MODELS)
def test_who_is_chosen_takes_requests(nodes: list[ServingNode], model: ServedModel) -> None:
    found = route(model, nodes)
    if isinstance(found, NoRoute):
        assert found.message
        assert found.hint
        assert (found.lack is Lack.BUSY) == (found.retry_after_s > 0)
        return
    (one,) = [each for each in nodes if each.node == found.node]
    assert one.takes
    assert not one.absence
    assert not one.is_drained
    assert one.serving.is_open
    is_ready = any(row.is_ready for row in one.serving.models)
    assert found.must_load or is_ready
    assert not (found.must_fetch and one.holds)


@given(NODES, MODELS, st.randoms())
def test_the_choice_does_not_depend_on_the_order(
    nodes: list[ServingNode], model: ServedModel, lots: Random
) -> None:
    mixed = list(nodes)
    lots.shuffle(mixed)
    assert route(model, nodes) == route(model, mixed)


@given(NODES, MODELS)
def test_nobody_is_refused_whom_a_node_could_answer(
    nodes: list[ServingNode], model: ServedModel
) -> None:
    could = any(each.takes for each in nodes) and any(
        each.holds and not each.absence for each in nodes
    )
    has_it = any(each.takes and each.load_of(model) for each in nodes)
    assert isinstance(route(model, nodes), Route) == (could or has_it)


@given(NODES, MODELS)
def test_another_choice_is_not_better_for_having_more_to_do(
    nodes: list[ServingNode], model: ServedModel
) -> None:
    found = route(model, nodes)
    if isinstance(found, Route):
        busier = [
            each if each.node == found.node else replace(each, in_flight=each.in_flight + 50)
            for each in nodes
        ]
        assert chosen(*busier, model=model).node == found.node


@given(NODES, MODELS)
def test_nothing_is_loaded_where_a_node_has_it_ready(
    nodes: list[ServingNode], model: ServedModel
) -> None:
    is_ready = any(
        each.takes and (row := each.load_of(model)) is not None and row.is_ready for each in nodes
    )
    found = route(model, nodes)
    assert (isinstance(found, Route) and not found.must_load) == is_ready


@pytest.mark.parametrize(
    "spoilt", [{"absence": "sleeps"}, {"is_drained": True}, {"can_compute": False}]
)
def test_who_stops_taking_requests_is_passed_over(spoilt: dict[str, Any]) -> None:
    assert chosen(replace(node("a", ready()), **spoilt), node("b", ready(9))).node == "b"
