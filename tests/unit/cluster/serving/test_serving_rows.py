"""What a node tells of its models, and what is believed of it."""

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cluster.serving.serving_rows import (
    MAX_MODELS,
    NOTHING,
    ModelLoad,
    NodeServing,
    read_serving,
)
from jupiterd.cluster.values.bounds import MAX_NUMBER
from jupiterd.ids import ArtifactId

COUNTS = st.integers(0, MAX_NUMBER)
LOADS = st.builds(
    ModelLoad,
    name=st.text("abc/0", min_size=1, max_size=20),
    artifact=st.none() | st.text("0123456789abcdef", min_size=64, max_size=64).map(ArtifactId),
    is_ready=st.booleans(),
    running=COUNTS,
    queued=COUNTS,
    tokens_per_s=st.none() | st.floats(0, 1e9),
)
SERVING = st.builds(
    NodeServing,
    models=st.lists(LOADS, max_size=MAX_MODELS).map(tuple),
    is_open=st.booleans(),
    is_pinned=st.booleans(),
    trains=st.booleans(),
)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(SERVING)
def test_what_is_told_is_read_as_it_was(serving: NodeServing) -> None:
    packed = msgpack.packb(serving.to_plain())
    assert read_serving(msgpack.unpackb(packed)) == serving


@given(PLAIN, PLAIN)
def test_whatever_a_member_says_nobody_breaks_by_it(models: object, anything: object) -> None:
    read_serving(anything)
    told = read_serving({"models": models, "open": anything, "pinned": anything})
    assert all(model.running >= 0 and model.waiting >= 0 for model in told.models)


@pytest.mark.parametrize(
    "row",
    [
        {"name": ""},
        {"name": 3},
        {"artifact": "a"},
        "promoted",
    ],
)
def test_a_row_without_a_name_is_left_out(row: object) -> None:
    assert read_serving({"models": [row]}) == NOTHING


def test_a_count_that_is_none_counts_as_nothing() -> None:
    row = {"name": "promoted", "ready": True, "running": -1, "queued": True, "tokens_per_s": "9"}
    assert read_serving({"models": [row]}).models == (ModelLoad("promoted", None),)


def test_terminal_codes_in_a_name_are_not_kept() -> None:
    (model,) = read_serving({"models": [{"name": "\x1b[2Jx"}]}).models
    assert model.name.isprintable()


def test_no_more_models_are_believed_than_one_node_can_serve() -> None:
    rows = [{"name": f"m{number}"} for number in range(MAX_MODELS + 5)]
    assert len(read_serving({"models": rows}).models) == MAX_MODELS
