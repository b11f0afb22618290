import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cycle.data.lineage import MAX_DEPTH, Sample, text_hash
from jupiterd.errors import Bug

REAL = {
    "id": text_hash("x = 1"),
    "text": "x = 1",
    "kind": "real",
    "depth": 0,
    "parents": (),
    "cluster_id": "json",
    "source_uri": "python:json/decoder.py",
    "revision": "3.11.7",
    "license": "PSF-2.0",
    "collector": "python_stdlib@1",
    "fetched_at": "2026-01-01T00:00:00Z",
}
SYNTHETIC = REAL | {
    "kind": "synthetic",
    "depth": 1,
    "parents": (REAL["id"],),
    "generator": "c0" * 32,
}


@given(text=st.text(max_size=50), temperature=st.floats(0, 2), seed=st.integers(0, 2**53))
def test_a_sample_survives_its_line(text, temperature, seed):
    fields = SYNTHETIC | {"text": text, "id": text_hash(text)}
    sample = Sample(**fields, sampler={"temperature": temperature, "seed": seed})
    line = sample.to_json()
    assert "\n" not in line
    assert Sample.from_json(line) == sample


def test_equal_samples_have_equal_bytes_whatever_the_order_of_their_readings():
    one = Sample(**SYNTHETIC, sampler={"seed": 1, "top_p": 0.9})
    other = Sample(**SYNTHETIC, sampler={"top_p": 0.9, "seed": 1})
    assert one.to_json() == other.to_json()


def test_the_id_is_the_hash_of_the_text():
    assert text_hash("a") == "17762fddd969a453925d65717ac3eea21320b66b54342fde15128d6caf21215f"
    assert len(text_hash("\ud800")) == 64  # half a character is hashed too, not refused


@pytest.mark.parametrize(
    "wrong",
    [
        SYNTHETIC | {"parents": ()},
        SYNTHETIC | {"depth": 0},
        SYNTHETIC | {"depth": MAX_DEPTH + 1},
        REAL | {"parents": ("p",)},
        REAL | {"depth": 1},
    ],
    ids=["orphan", "synthetic at depth 0", "too deep", "real with parents", "real with depth"],
)
def test_provenance_that_contradicts_itself_is_refused(wrong):
    with pytest.raises(Bug):
        Sample(**wrong)


@pytest.mark.parametrize(
    "line", ["", "[]", "{}", "nonsense", json.dumps(REAL | {"colour": "red"})], ids=repr
)
def test_a_line_that_is_no_sample_is_refused(line):
    with pytest.raises(Bug, match="no sample"):
        Sample.from_json(line)
