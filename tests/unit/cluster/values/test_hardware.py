import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cluster.values.hardware import Gpu, Hardware


@given(st.builds(Hardware))
def test_a_record_survives_json(record: Hardware):
    assert Hardware.from_plain(json.loads(json.dumps(record.to_plain()))) == record


def test_the_plain_form_holds_lists_and_dicts_alone():
    gpu = Gpu("RTX 4090", "GPU-1", 24 << 30, "cuda")
    plain = Hardware("Linux", "x86_64", "Ryzen", 16, 64 << 30, (gpu,), ("torch",)).to_plain()
    assert plain["engines"] == ["torch"]
    assert plain["gpus"] == [
        {"name": "RTX 4090", "uuid": "GPU-1", "memory_bytes": 24 << 30, "kind": "cuda"}
    ]
    assert plain["on_mains"] is True


def test_a_record_without_one_of_its_fields_is_refused():
    plain = Hardware("Linux", "x86_64", "Ryzen", 16, 64 << 30).to_plain()
    del plain["cpu"]
    with pytest.raises(KeyError):
        Hardware.from_plain(plain)


def test_a_field_of_the_wrong_kind_is_refused():
    plain = Hardware("Linux", "x86_64", "Ryzen", 16, 64 << 30).to_plain()
    for told in ({"cores": "many"}, {"ram_bytes": "9" * 4000}, {"ram_bytes": 1.5}):
        with pytest.raises(TypeError, match="is no whole number"):
            Hardware.from_plain(plain | told)
    gpu = {"name": "GPU", "uuid": "1", "memory_bytes": "9" * 4000, "kind": "cuda"}
    with pytest.raises(TypeError, match="is no whole number"):
        Hardware.from_plain(plain | {"gpus": [gpu]})


def test_what_a_newer_jupiter_says_beyond_it_is_left_out():
    record = Hardware("Linux", "x86_64", "Ryzen", 16, 64 << 30)
    assert Hardware.from_plain(record.to_plain() | {"colour": "beige"}) == record


def test_a_record_without_its_lists_is_refused():
    with pytest.raises(KeyError):
        Hardware.from_plain({"system": "Linux"})


def test_versions_are_told_and_cut_short_and_those_of_older_nodes_are_unknown():
    plain = Hardware("Linux", "x86_64", "Ryzen", 16, 64 << 30).to_plain()
    told = Hardware.from_plain(plain | {"versions": {"torch": "2.13.0", "mlx": "x" * 999}})
    assert dict(told.versions) == {"torch": "2.13.0", "mlx": "x" * 64}
    many = {str(number): "1" for number in range(99)}
    assert len(Hardware.from_plain(plain | {"versions": many}).versions) == 8
    del plain["versions"]
    for odd in ({}, {"versions": 5}, {"versions": None}):
        assert Hardware.from_plain(plain | odd).versions == ()
