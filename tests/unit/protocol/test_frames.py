import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.errors import Bug
from jupiterd.protocol.frames import (
    MAX_FRAME_BYTES,
    CheckpointUnsaved,
    CheckpointWritten,
    Frame,
    FrameReader,
    GangJoined,
    Progressed,
    RunTask,
    StopTask,
    StoreOpened,
    TaskFailed,
    TaskFinished,
    decode,
    encode,
)

_texts = st.text(max_size=20)
_counts = st.integers(0, 2**63 - 1)
_numbers = st.floats(allow_nan=False)
_values = st.dictionaries(_texts, _numbers, max_size=3)
_scalars = st.none() | st.booleans() | _counts | _numbers | _texts
_params = st.recursive(_scalars, lambda inner: st.lists(inner) | st.dictionaries(_texts, inner))

frames = st.one_of(
    st.builds(
        RunTask,
        task=_texts,
        params=st.dictionaries(_texts, _params, max_size=3),
        inputs=st.dictionaries(_texts, _texts, max_size=3),
        output_dir=_texts,
    ),
    st.builds(StopTask, reason=_texts),
    st.builds(Progressed, done=_counts, total=_counts, unit=_texts, values=_values),
    st.builds(
        CheckpointWritten, path=_texts, step=_counts, tokens=_counts, cursor=_counts, loss=_numbers
    ),
    st.builds(CheckpointUnsaved, step=_counts, message=_texts),
    st.builds(StoreOpened, port=_counts),
    st.builds(GangJoined, device=_texts, note=_texts),
    st.builds(
        TaskFinished,
        outputs=st.dictionaries(_texts, _texts, max_size=3),
        counts=_values,
        summary=st.dictionaries(_texts, _scalars, max_size=3),
    ),
    st.builds(TaskFailed, code=_texts, message=_texts, hint=_texts),
)


@given(frames)
def test_a_frame_survives_the_pipe(frame: Frame):
    assert decode(encode(frame)[4:]) == frame


@given(st.lists(frames, max_size=4), st.integers(1, 50))
def test_frames_come_out_whole_however_the_stream_is_cut(sent: list[Frame], piece: int):
    stream = b"".join(map(encode, sent))
    reader, received = FrameReader(), []
    for start in range(0, len(stream), piece):
        received += reader.feed(stream[start : start + piece])
    assert received == sent


@given(st.binary(max_size=200))
def test_noise_is_never_taken_for_a_frame(noise: bytes):
    with pytest.raises(Bug):
        decode(b"\x81\xa4type\xa6Nobody" + noise)


def test_fields_that_a_frame_does_not_have_are_refused():
    body = encode(StopTask("enough"))[4:]
    with pytest.raises(Bug):
        decode(body.replace(b"reason", b"raison"))


def test_a_frame_over_the_limit_is_not_sent():
    with pytest.raises(Bug, match="over the limit"):
        encode(StopTask("x" * MAX_FRAME_BYTES))


def test_a_length_over_the_limit_is_refused_before_the_bytes_arrive():
    with pytest.raises(Bug, match="announced"):
        list(FrameReader().feed((MAX_FRAME_BYTES + 1).to_bytes(4, "big")))
