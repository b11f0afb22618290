import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cluster.hardware import Gpu, Hardware


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


@pytest.mark.parametrize("change", ["missing", "unknown"])
def test_fields_that_do_not_fit_are_refused(change):
    plain = Hardware("Linux", "x86_64", "Ryzen", 16, 64 << 30).to_plain()
    if change == "missing":
        del plain["cpu"]
    else:
        plain["colour"] = "beige"
    with pytest.raises(TypeError):
        Hardware.from_plain(plain)


def test_a_record_without_its_lists_is_refused():
    with pytest.raises(KeyError):
        Hardware.from_plain({"system": "Linux"})
