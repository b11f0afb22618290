"""A client that speaks just enough HTTP/2 to break its rules, over the daemons' TLS.

Owns frames as bytes. Doesn't know gRPC's services: what it sends is given to it.
"""

import asyncio
import ssl
import struct
from collections import Counter
from typing import Self

from jupiterd.net.identity import LEAF_NAME, Identity

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, GOAWAY = 0, 1, 3, 4, 7
END_HEADERS, END_STREAM, ACK = 4, 1, 1
NAMES = {DATA: "data", HEADERS: "headers", RST_STREAM: "reset", SETTINGS: "settings", GOAWAY: "end"}


class RawConnection:
    """One connection; counts what comes back."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._stream = -1
        self.came: Counter[str] = Counter()
        """Frames that came, by kind."""

    @classmethod
    async def open(cls, port: int, identity: Identity, source: str = "127.0.0.1") -> Self:
        """Shake hands with a daemon on loopback, whoever it is; source: our own address."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_alpn_protocols(["h2"])
        context.load_cert_chain(identity.certificate_path, identity.key_path)
        streams = await asyncio.open_connection(
            "127.0.0.1", port, ssl=context, server_hostname=LEAF_NAME, local_addr=(source, 0)
        )
        connection = cls(*streams)
        connection._writer.write(PREFACE + _frame(SETTINGS, 0, 0, b""))
        return connection

    def begin(self, path: str, more: tuple[tuple[str, str], ...] = ()) -> int:
        """Open a stream for one call, and say nothing on it yet."""
        self._stream += 2
        pairs = (
            (":method", "POST"), (":scheme", "https"), (":path", path), (":authority", LEAF_NAME),
            ("content-type", "application/grpc"), ("te", "trailers"), *more,
        )  # fmt: skip
        block = b"".join(_literal(name, value) for name, value in pairs)
        self.send(_frame(HEADERS, END_HEADERS, self._stream, block))
        return self._stream

    def message(self, stream: int, body: bytes, *, claimed_bytes: int | None = None) -> None:
        """Send a message as gRPC frames it; it may claim to be longer than what follows."""
        length = len(body) if claimed_bytes is None else claimed_bytes
        self.send(_frame(DATA, 0, stream, b"\0" + struct.pack(">I", length) + body))

    def send(self, raw: bytes) -> None:
        """Send bytes as they are."""
        self._writer.write(raw)

    async def listen(self, timeout_s: float) -> bool:
        """Count frames for so long; say whether the other side has ended the connection."""
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    await self._writer.drain()
                    head = await self._reader.readexactly(9)
                    await self._reader.readexactly(int.from_bytes(head[:3], "big"))
                    self.came[NAMES.get(head[3], "other")] += 1
                    if head[3] == SETTINGS and not head[4] & ACK:
                        self.send(_frame(SETTINGS, ACK, 0, b""))
        except TimeoutError:
            return False
        except (OSError, asyncio.IncompleteReadError):
            return True

    @property
    def has_ended(self) -> bool:
        """Say whether the other side has hung up."""
        return self._writer.is_closing() or self._reader.at_eof()

    def close(self) -> None:
        """Hang up."""
        self._writer.transport.abort()


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return (
        struct.pack(">I", len(payload))[1:]
        + bytes((kind, flags))
        + struct.pack(">I", stream)
        + payload
    )


def _literal(name: str, value: str) -> bytes:
    """One header, spelt out: HPACK without its tables."""
    return b"\0" + _text(name) + _text(value)


def _text(text: str) -> bytes:
    raw = text.encode()
    if len(raw) < 127:
        return bytes((len(raw),)) + raw
    rest, out = len(raw) - 127, bytearray((127,))
    while rest >= 128:
        out.append(rest % 128 + 128)
        rest //= 128
    return bytes((*out, rest)) + raw
