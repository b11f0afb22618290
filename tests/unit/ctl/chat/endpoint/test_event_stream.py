"""Server-sent events, whatever the bytes are split into."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from jupiterd.ctl.chat.endpoint.event_stream import Event, EventStream

STREAM = (
    "\ufeffdata: {\"text\": \"caf\u00e9 \u4f60\u597d\"}\n\n: loading python/2\n\n"
    "event: odd\r\ndata: one\r\ndata:two\r\n\r\ndata\rid: 7\r\rdata: [DONE]\n\ndata: broken"
).encode()  # fmt: skip
EVENTS = [
    Event('{"text": "caf\u00e9 \u4f60\u597d"}'),
    Event(comment="loading python/2"),
    Event("one\ntwo"),
    Event(""),
    Event("[DONE]"),
]


def events_of(pieces: list[bytes]) -> list[Event]:
    stream = EventStream()
    return [*(event for piece in pieces for event in stream.feed(piece)), *stream.end()]


def split(data: bytes, cuts: set[int]) -> list[bytes]:
    bounds = [0, *sorted(cuts), len(data)]
    return [data[a:b] for a, b in pairwise(bounds)]


@given(st.sets(st.integers(0, len(STREAM))))
def test_any_split_of_the_bytes_brings_the_same_events(cuts):
    assert events_of(split(STREAM, cuts)) == EVENTS


def test_bytes_that_come_one_by_one_bring_them_too():
    assert events_of([bytes([byte]) for byte in STREAM]) == EVENTS


@given(st.binary(max_size=200), st.sets(st.integers(0, 200)))
def test_odd_bytes_bring_the_same_whatever_their_split_and_no_error(data, cuts):
    cuts = {cut for cut in cuts if cut <= len(data)}
    assert events_of(split(data, cuts)) == events_of([data])


@given(st.lists(st.text(alphabet=st.characters(exclude_characters="\r\n\ufeff")), max_size=5))
def test_what_is_sent_arrives(texts):
    sent = b"".join(f"data: {text}\n\n".encode("utf-8", "replace") for text in texts)
    known = [text.encode("utf-8", "replace").decode() for text in texts]
    assert [event.data for event in events_of([sent])] == known


def test_an_event_that_breaks_off_is_none():
    assert events_of([b"data: half"]) == []
    assert events_of([b"data: half\n"]) == []
    assert events_of([b"data: whole\n\r"]) == [Event("whole")]  # the CR is the empty line's end
