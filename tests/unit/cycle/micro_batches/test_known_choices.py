"""The file of micro batches that were found before."""

import json
from dataclasses import asdict

import pytest

from jupiterd.cycle.micro_batches.known_choices import (
    KEPT,
    Choice,
    choice_in,
    key_of,
    with_choice,
)
from jupiterd.cycle.training.adapters.adapter import parse_adapter
from jupiterd.cycle.training.engine_options import DeviceAbilities
from jupiterd.cycle.training.memory import options_on
from jupiterd.cycle.training.plan import derive
from jupiterd.daemon.catalog.model_specs import presets

H100 = "NVIDIA H100 80GB HBM3"
CHOICE = Choice(32, 64, 1e6)


def test_a_choice_is_found_again():
    text = with_choice(with_choice("", "a", CHOICE), "b", Choice(8, 64, 1.0))
    assert choice_in(text, "a", 64) == CHOICE
    assert choice_in(text, "c", 64) is None


@pytest.mark.parametrize(("most", "holds"), [(64, True), (48, True), (16, False), (128, False)])
def test_a_choice_holds_for_no_more_than_was_tried_and_for_what_fits_now(most: int, holds: bool):
    assert (choice_in(with_choice("", "a", CHOICE), "a", most) is not None) is holds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"a": 3}',
        '{"a": null}',
        '{"a": {"micro_batch": 3}}',
        json.dumps({"a": asdict(CHOICE) | {"micro_batch": "many"}}),
        json.dumps({"a": asdict(CHOICE) | {"micro_batch": 0}}),
        json.dumps({"a": asdict(CHOICE) | {"more": 1}}),
        json.dumps({"a": asdict(CHOICE) | {"most": []}}),
    ],
)
def test_a_damaged_file_knows_nothing_and_is_written_anew(text: str):
    assert choice_in(text, "a", 64) is None
    assert choice_in(with_choice(text, "a", CHOICE), "a", 64) == CHOICE


def test_the_oldest_choices_make_room():
    text = ""
    for number in range(KEPT + 5):
        text = with_choice(text, str(number), CHOICE)
    assert len(json.loads(text)) == KEPT
    assert choice_in(text, "4", 64) is None


def test_a_choice_holds_for_one_model_device_way_and_version():
    shape = next(each for each in presets() if each.size == "25m")
    plan, versions = derive(shape, 1), {"torch": "2.11.0", "jupiterd": "0.9.0"}
    options = options_on(DeviceAbilities("torch", "cuda", 80 << 30, has_bf16=True), shape, plan)
    slow = options_on(DeviceAbilities("torch", "cpu", 80 << 30), shape, plan)
    long, named = (
        shape.model_copy(update=changes) for changes in ({"seq_len": 2048}, {"size": "mine"})
    )
    keys = [
        key_of(shape, 64, options, H100, versions),
        key_of(long, 64, options, H100, versions),
        key_of(shape, 128, options, H100, versions),
        key_of(shape, 64, slow, H100, versions),
        key_of(shape, 64, options, "NVIDIA H200", versions),
        key_of(shape, 64, options, H100, versions | {"torch": "2.12.0"}),
        key_of(shape, 64, options, H100, versions, parse_adapter("rank=8")),
        key_of(shape, 64, options, H100, versions, parse_adapter("rank=16")),
    ]
    assert len(set(keys)) == len(keys)
    assert key_of(named, 64, options, H100, versions) == keys[0]
