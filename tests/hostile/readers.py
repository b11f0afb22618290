"""Everything that bytes of strangers and members are read by, with what good bytes look like.

Owns the table. What a reader may answer to odd bytes is named, and nothing else may come of them:
no other error, no answer that isn't what the reader promises, and no second that passes.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import DecodeError, Message
from zeroconf import DNSIncoming  # pyright: ignore[reportPrivateImportUsage]

from jupiterd.cluster.health.alert_senders import SentAlerts
from jupiterd.cluster.ledger.entry import MAX_ENTRY_BYTES, parse, seal
from jupiterd.cluster.ledger.snapshot import FORM, parse_snapshot
from jupiterd.cluster.ledger.tokens import parse_token
from jupiterd.cluster.membership.pending_joins import from_telemetry
from jupiterd.cluster.values.bounds import is_count
from jupiterd.cluster.values.gpu_load import read_rows
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.cluster.values.link_quality import read_qualities
from jupiterd.cycle.questions.task_requests import (
    CONTINUED,
    TaskRequest,
    read_answers,
    travelling_requests,
)
from jupiterd.daemon.links.refused_connections import refused_finding
from jupiterd.daemon.links.seen_clusters import from_message
from jupiterd.daemon.observability.report_wire import read_reply
from jupiterd.daemon.queries.cycle.curve_wire import curves_of
from jupiterd.daemon.runtime.telemetry import read_telemetry, unpacked
from jupiterd.daemon.runtime.untrusted_input import (
    sanitized_address,
    sanitized_addresses,
    sanitized_text,
)
from jupiterd.daemon.runtime.work_events import SaveRequest, WorkOrder, from_proto
from jupiterd.daemon.serving import answer_wire
from jupiterd.errors import Bug, JupiterError, RefusedError
from jupiterd.ids import NodeId
from jupiterd.net.chunk_codec import Piece, decode_piece, encode_piece
from jupiterd.net.identity import node_id_of, pairing_root_pem
from jupiterd.net.message_bounds import out_of_bounds
from jupiterd.processes.script_messages import event_from_proto, order_from_proto
from jupiterd.protocol.frames import FrameReader, Progressed, encode
from jupiterd.protocol.local_query import noun_of, read_answer
from jupiterd.rpc import artifact_pb2, peer_pb2, script_pb2, serving_pb2
from jupiterd.store import manifest
from tests.hostile import odd_bytes
from tests.hostile.attack import announcement
from tests.hostile.odd_bytes import Chance, as_json, filled, number, packed, plain, raw, text

MOST_S = 1.0
"""For one input of 64 KiB at most."""

NO_DESCRIPTION = (ValueError, TypeError, KeyError, AttributeError, OverflowError)
"""What is left out of what a member says of itself, see `daemon.peers`."""

ASKED = TaskRequest(CONTINUED, ("2 + 2 =", " 4"), {})
FILES = (peer_pb2, artifact_pb2, script_pb2, serving_pb2)
KINDS = [kind for file in FILES for kind in file.DESCRIPTOR.message_types_by_name.values()]


@dataclass(frozen=True)
class Reader:
    """One way in."""

    good: Callable[[Chance], bytes]
    """Makes bytes that are mostly right."""
    read: Callable[[bytes], object]
    refuses_with: tuple[type[Exception], ...] = (JupiterError,)


def attempt(name: str, number: int) -> None:
    """Let a reader read the input of that number.

    Raises:
        AssertionError: something came of it that mustn't; the message has the input try again.
    """
    reader, chance = READERS[name], Chance(f"{name} {number}")
    given = odd_bytes.damaged(chance, reader.good(chance))
    began_s = time.thread_time()
    try:
        reader.read(given)
    except reader.refuses_with:
        pass
    except Exception as error:
        raise AssertionError(f"attempt({name!r}, {number}): {given[:100]!r}") from error
    took_s = time.thread_time() - began_s
    assert took_s < MOST_S, f"attempt({name!r}, {number}) took {took_s:.1f} s"


def _message(kind: Any, read: Callable[[Any], object] = lambda _: None) -> Reader:
    """Return the reader of a message: as the border reads it, then what makes something of it."""

    def read_all(given: bytes) -> None:
        message: Message = kind.FromString(given)
        if not out_of_bounds(message):
            read(message)

    return Reader(
        lambda chance: filled(chance, kind.DESCRIPTOR).SerializeToString(),
        read_all,
        (DecodeError, JupiterError),
    )


def _any_message(chance: Chance) -> bytes:
    kind = chance.randrange(len(KINDS))
    return bytes((kind,)) + filled(chance, KINDS[kind]).SerializeToString()


def _read_any(given: bytes) -> None:
    if given:
        kind = odd_bytes.GetMessageClass(KINDS[given[0] % len(KINDS)])
        message = kind.FromString(given[1:])
        if not out_of_bounds(message):
            kind.FromString(message.SerializeToString())


def _anything(chance: Chance) -> bytes:
    return packed(plain(chance))


def _batch(chance: Chance) -> bytes:
    kind = chance.choice(["loglikelihood", "loglikelihood_rolling", "generate_until"])
    row = [kind, text(chance), {chance.choice(["until", "top_k", "x"]): plain(chance)}]
    return as_json(row[: chance.randrange(1, 4)] if chance.random() < 0.7 else plain(chance))


def _entry(chance: Chance) -> bytes:
    facts = [["NodeRemoved", 1, {"node": text(chance), "admissions": plain(chance), "x": 1}]]
    told = ["a" * 32, 1, "b" * 32, "c" * 16, chance.randrange(1, 4), "", facts]
    if chance.random() < 0.5:
        told[chance.randrange(len(told))] = plain(chance)
    return seal(packed(told), raw(chance) or b"x")


def _snapshot(chance: Chance) -> bytes:
    kinds = [["NodeRemoved", 1, ["node", "admissions"]]]
    facts = [[0, number(chance), 0, [text(chance), plain(chance)]]]
    body = [FORM, "a" * 32, "b" * 32, [["b" * 32 + "/" + "c" * 16, 1, "d" * 64, 1]], kinds, facts]
    if chance.random() < 0.7:
        body[chance.randrange(1, len(body))] = plain(chance)
    return packed([packed(body), b"signature"])


def _read_entry(given: bytes) -> None:
    entry = parse(given)
    assert len(given) <= MAX_ENTRY_BYTES
    assert is_count(entry.term)
    assert is_count(entry.index)


def _telemetry(chance: Chance) -> bytes:
    names = ("load", "live", "gpus", "waiting", "door", "alerts", "epoch", "links", "curves")
    return packed({name: plain(chance) for name in names if chance.random() < 0.6})


def _read_telemetry(given: bytes) -> None:
    told = read_telemetry(given)
    from_telemetry(told)
    read_rows(told.get("gpus"))
    sent = SentAlerts()
    alerts = told.get("alerts")
    known: Mapping[str, Any] = alerts if isinstance(alerts, dict) else {}
    sent.learn(known.get("sent"))
    for finding in refused_finding(NodeId("a" * 32), "attic", known.get("gang-knocked")):
        assert finding.detail.isprintable()


def _read_hardware(given: bytes) -> None:
    Hardware.from_plain(unpacked(given))


def _read_links(given: bytes) -> None:
    read_qualities(unpacked(given))


def _hardware(chance: Chance) -> bytes:
    names = ("system", "machine", "cpu", "cores", "ram_bytes", "engines", "on_mains", "gpus")
    return packed({name: plain(chance) for name in names})


def _read_text(given: bytes) -> None:
    told = sanitized_text(given.decode(errors="replace"))
    assert told.isprintable()
    assert len(told) <= 64


def _read_address(given: bytes) -> None:
    words = given.decode(errors="replace").splitlines()
    for word in words:
        assert 0 < sanitized_address(word).port < 65536
    sanitized_addresses(words)


def _manifest(chance: Chance) -> bytes:
    rows: list[Any] = sorted(
        [text(chance), chance.choice((1, number(chance))), ["0" * 64]]
        for _ in range(chance.randrange(4))
    )
    return packed([*rows, plain(chance)] if chance.random() < 0.2 else rows)


def _read_manifest(given: bytes) -> None:
    manifest.check(manifest.decode(given))


def _read_frames(given: bytes) -> None:
    list(FrameReader().feed(given))


def _read_dns(given: bytes) -> None:
    DNSIncoming(given).answers()


READERS: Mapping[str, Reader] = {
    "any message": Reader(_any_message, _read_any, (DecodeError,)),
    "Hello, a stranger's cluster": _message(peer_pb2.ClusterSummary, from_message),
    "RunWork, an order": _message(peer_pb2.WorkRequest, WorkOrder.from_proto),
    "RunWork, what comes back": _message(peer_pb2.WorkEvent, from_proto),
    "EndEpoch": _message(peer_pb2.EndAttemptRequest, SaveRequest.from_proto),
    "AskReport, what comes back": _message(peer_pb2.ReportReply, read_reply),
    "ReadCurves, what comes back": _message(peer_pb2.CurvesReply, curves_of),
    "Scripts.Run, an order": _message(script_pb2.ScriptOrder, order_from_proto),
    "Scripts.Run, what comes back": _message(script_pb2.ScriptEvent, event_from_proto),
    "Serving.Answer, an order": _message(serving_pb2.AnswerOrder, answer_wire.order_from_proto),
    "Serving.Answer, its end": _message(serving_pb2.AnswerOver, answer_wire.error_of),
    "Serving.AnswerBatches, a batch": Reader(
        _batch, lambda given: travelling_requests(given.decode(errors="replace"))
    ),
    "Serving.AnswerBatches, answers": Reader(
        lambda chance: as_json([plain(chance)]),
        lambda given: read_answers(given.decode(errors="replace"), [ASKED]),
    ),
    "a certificate": Reader(lambda _: pairing_root_pem(), node_id_of, (RefusedError,)),
    "a ledger's entry": Reader(_entry, _read_entry),
    "a ledger's snapshot": Reader(_snapshot, parse_snapshot),
    "a heartbeat's telemetry": Reader(_telemetry, _read_telemetry, (ValueError, TypeError)),
    "a heartbeat's hardware": Reader(_hardware, _read_hardware, NO_DESCRIPTION),
    "a heartbeat's links": Reader(_anything, _read_links, (ValueError, TypeError)),
    "an artifact's manifest": Reader(_manifest, _read_manifest),
    "an artifact's piece": Reader(
        lambda chance: encode_piece(Piece(number(chance) >> 1, raw(chance))),
        decode_piece,
        (DecodeError,),
    ),
    "a name": Reader(lambda chance: text(chance).encode(), _read_text),
    "addresses": Reader(lambda chance: text(chance).encode(), _read_address, (ValueError,)),
    "a join token": Reader(
        lambda chance: text(chance).encode(),
        lambda given: parse_token(given.decode(errors="replace")),
    ),
    "a worker's frames": Reader(
        lambda chance: encode(Progressed(1, 2, text(chance), {"x": 1.0})) * 2, _read_frames, (Bug,)
    ),
    "a question of a local program": Reader(
        lambda chance: as_json({"document": plain(chance)}), noun_of
    ),
    "an answer of the daemon": Reader(
        lambda chance: as_json({"document": {"x": plain(chance)}}), read_answer, (JupiterError, Bug)
    ),
    "a multicast packet": Reader(
        lambda chance: announcement(chance.randrange(99), chance.randrange(65536)), _read_dns, ()
    ),
}
"""By what is read."""
