"""Pieces of artifacts on the wire are what protobuf would make of them."""

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.net.chunk_codec import Piece, decode_piece, encode_piece
from jupiterd.rpc.artifact_pb2 import FetchPiece

offsets = st.integers(0, 2**64 - 1)


@given(offsets, st.binary(max_size=300))
def test_protobuf_reads_what_we_write_and_we_read_what_it_writes(offset: int, data: bytes) -> None:
    ours = FetchPiece.FromString(encode_piece(Piece(offset, memoryview(data))))
    assert (ours.offset, ours.data) == (offset, data)
    for raw in (ours.SerializeToString(), encode_piece(Piece(offset, data))):
        piece = decode_piece(raw)
        assert (piece.offset, bytes(piece.data)) == (offset, data)


@given(st.binary(max_size=60))
def test_anything_else_is_read_as_protobuf_reads_it_or_refused(raw: bytes) -> None:
    try:
        expected = FetchPiece.FromString(raw)
    except DecodeError:
        with pytest.raises(DecodeError):
            decode_piece(raw)
        return
    piece = decode_piece(raw)
    assert (piece.offset, bytes(piece.data)) == (expected.offset, expected.data)


def test_an_unended_number_is_refused() -> None:
    with pytest.raises(DecodeError):
        decode_piece(b"\x08" + b"\xff" * 11)
