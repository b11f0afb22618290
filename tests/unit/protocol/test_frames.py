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
    OuterStepArrived,
    OuterStepMissing,
    Progressed,
    PseudoGradientWritten,
    RankListening,
    RunTask,
    StateSaved,
    StopTask,
    TaskFailed,
    TaskFinished,
    decode,
    encode,
)
from jupiterd.protocol.training_values import PseudoGradient, RoundOrder, TrainingProgress

_texts = st.text(max_size=20)
_counts = st.integers(0, 2**63 - 1)
_numbers = st.floats(allow_nan=False)
_values = st.dictionaries(_texts, _numbers, max_size=3)
_scalars = st.none() | st.booleans() | _counts | _numbers | _texts
_params = st.recursive(_scalars, lambda inner: st.lists(inner) | st.dictionaries(_texts, inner))

_progress = st.builds(
    TrainingProgress, step=_counts, tokens=_counts, cursor=_counts, loss=_numbers, horizon=_values
)
_checkpoints = st.builds(CheckpointWritten, path=_texts, progress=_progress)
_pseudo_gradients = st.builds(
    PseudoGradient,
    after=_texts,
    tokens=_counts,
    norm=_numbers,
    elapsed_s=_numbers,
    logits=st.binary(max_size=9),
    size_bytes=_counts,
    stands_at=_texts,
    digest=st.binary(max_size=9),
    scored_step=_counts,
    held_out=_numbers,
    counted=_counts,
)
_orders = st.builds(
    RoundOrder,
    step=_texts,
    number=_counts,
    first_step=_counts,
    steps=_counts,
    batch_sequences=_counts,
    positions=_texts,
    island=_texts,
    lag=_counts,
    scored_step=_counts,
)

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
    _checkpoints,
    st.builds(StateSaved, checkpoint=st.none() | _checkpoints),
    st.builds(PseudoGradientWritten, path=_texts, pseudo_gradient=_pseudo_gradients),
    st.builds(
        OuterStepArrived,
        after=_texts,
        order=_orders,
        pseudo_gradients=st.lists(_texts, max_size=2),
        tokens=st.lists(_counts, max_size=2),
        rate=_numbers,
        horizon=_values,
    ),
    st.builds(OuterStepMissing, after=_texts, reason=_texts),
    st.builds(CheckpointUnsaved, step=_counts, message=_texts),
    st.builds(RankListening, port=_counts),
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
