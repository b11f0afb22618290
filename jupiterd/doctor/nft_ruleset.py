"""What a Linux packet filter does with one new connection, according to `nft --json list ruleset`.

Pure. Owns the evaluation of the rules. Doesn't know which packets matter. A condition that it
doesn't understand (an iptables extension, a named set) makes the result unsure.
"""

import ipaddress
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, cast

from jupiterd.address_ranges import is_multicast

MAX_DEPTH = 8
"""The highest number of nested jumps between chains."""

_RETURN = "return"

Row = Mapping[str, Any]


class PacketOutcome(StrEnum):
    """The fate of a packet."""

    ACCEPTED = "accepted"
    DROPPED = "dropped"
    UNSURE = "unsure"


@dataclass(frozen=True)
class Packet:
    """The first packet of a connection from another machine in the same network."""

    protocol: str
    """`tcp` or `udp`."""
    port: int
    interface: str
    source: str
    """An IPv4 address."""
    destination: str
    """An IPv4 address: this machine's, or a multicast group's."""

    @property
    def kind(self) -> str:
        """Return the packet's type in rules: `multicast` or `unicast`."""
        return "multicast" if is_multicast(self.destination) else "unicast"


@dataclass
class _Walk:
    """The evaluation of one packet by the chains of one table."""

    packet: Packet
    rules: Mapping[str, Sequence[Sequence[Any]]]
    is_unsure: bool = field(default=False)

    def through(self, chain: str, depth: int = 0) -> str:
        """Return `accept`, `drop`, or an empty text if the chain doesn't decide."""
        for expressions in self.rules.get(chain, ()):
            fits = _fits(expressions, self.packet)
            if fits is None:
                self.is_unsure = self.is_unsure or any(map(_decides, expressions))
            elif fits and (verdict := self._verdict(expressions, depth)):
                return verdict.removesuffix(_RETURN)
        return ""

    def _verdict(self, expressions: Sequence[Any], depth: int) -> str:
        for expression in expressions:
            match expression:
                case {"vmap": {"key": key, "data": {"set": list(rows)}}}:
                    return self._verdict(_chosen(key, rows, self.packet), depth)
                case {"return": _}:
                    return _RETURN
                case {"accept": _}:
                    return "accept"
                case {"drop": _} | {"reject": _}:
                    return "drop"
                case {"jump": {"target": str(target)}} | {"goto": {"target": str(target)}}:
                    return self.through(target, depth + 1) if depth < MAX_DEPTH else ""
                case _:
                    pass
        return ""


def outcome(ruleset_json: str, packet: Packet) -> PacketOutcome:
    """Return the outcome of an incoming packet; raise ValueError or KeyError for another text."""
    objects = json.loads(ruleset_json)["nftables"]
    unsure = False
    for chain, rules in _input_chains(objects):
        walk = _Walk(packet, rules)
        verdict = walk.through(str(chain["name"])) or str(chain.get("policy", "accept"))
        unsure = unsure or walk.is_unsure
        if verdict == "drop":
            return PacketOutcome.UNSURE if walk.is_unsure else PacketOutcome.DROPPED
    return PacketOutcome.UNSURE if unsure else PacketOutcome.ACCEPTED


def _input_chains(
    objects: Sequence[Row],
) -> Iterator[tuple[Row, Mapping[str, Sequence[Sequence[Any]]]]]:
    """Yield each input chain for IPv4 packets, with its table's rules: chain -> expressions."""
    chains = [row["chain"] for row in objects if "chain" in row]
    rules = [row["rule"] for row in objects if "rule" in row]
    for chain in chains:
        if chain.get("hook") != "input" or chain.get("family") not in {"ip", "inet"}:
            continue
        table = chain["family"], chain["table"]
        of_table: dict[str, list[Sequence[Any]]] = {}
        for rule in rules:
            if (rule["family"], rule["table"]) == table:
                of_table.setdefault(str(rule["chain"]), []).append(rule.get("expr", ()))
        yield chain, of_table


def _fits(expressions: Sequence[Any], packet: Packet) -> bool | None:
    """Return whether a rule's conditions match the packet; None: unknown."""
    answers = [_matches(expression, packet) for expression in expressions]
    if False in answers:
        return False
    return None if None in answers else True


def _decides(expression: object) -> bool:
    kinds = {"accept", "drop", "reject", "jump", "goto", "vmap"}
    return isinstance(expression, Mapping) and bool(kinds & set(cast("Row", expression)))


def _chosen(key: object, rows: list[Any], packet: Packet) -> list[Any]:
    """Return a map's verdict for the packet, as a list of expressions; empty: it has none."""
    value = _value(key, packet) or ""
    return [verdict for element, verdict in rows if _among(value, element)][:1]


def _matches(expression: object, packet: Packet) -> bool | None:
    match expression:
        case {"match": {"left": left, "right": right, "op": str(op)}}:
            known = _value(left, packet)
            if known is None:
                return None
            among = _among(known, right)
            return None if among is None else among is (op in {"==", "in"})
        case {"vmap": {"key": key, "data": {"set": list()}}}:
            return True if _value(key, packet) is not None else None
        case {"xt": _} | {"vmap": _} | {"lookup": _}:
            return None
        case _:
            return True  # a counter, a log, a verdict


def _value(left: object, packet: Packet) -> str | None:
    """Return the packet's value of the field that a rule compares; None: unknown."""
    match left:
        case {"payload": {"protocol": str(protocol), "field": str(name)}}:
            if protocol in {"tcp", "udp", "ip6", "icmp", "icmpv6"} - {packet.protocol}:
                return "another protocol"
            layer = "transport" if protocol in {"th", packet.protocol} else protocol
            return _known(packet).get((layer, name))
        case {"meta": {"key": str(key)}}:
            return _known(packet).get(("meta", key))
        case {"ct": {"key": "state"}}:
            return "new"
        case _:
            return None


def _known(packet: Packet) -> Mapping[tuple[str, str], str]:
    """Return (layer, field) -> value for a packet."""
    return {
        ("transport", "dport"): str(packet.port),
        ("ip", "saddr"): packet.source,
        ("ip", "daddr"): packet.destination,
        ("ip", "protocol"): packet.protocol,
        ("ip", "version"): "4",
        ("meta", "l4proto"): packet.protocol,
        ("meta", "pkttype"): packet.kind,
        ("meta", "iifname"): packet.interface,
        ("meta", "iif"): packet.interface,
        ("meta", "nfproto"): "ipv4",
        ("meta", "protocol"): "ip",
    }


def _among(value: str, right: object) -> bool | None:
    """Return whether a value matches a rule's right side; None: unknown."""
    match right:
        case {"set": list(items)} | [*items]:
            answers = [_among(value, item) for item in items]
            return True if True in answers else None if None in answers else False
        case {"range": [low, high]}:
            return _is_between(value, str(low), str(high))
        case {"prefix": {"addr": str(address), "len": int(length)}}:
            return _is_within(value, f"{address}/{length}")
        case str() | int():
            return _is_word(value, str(right))
        case _:
            return None


def _is_word(value: str, word: str) -> bool | None:
    """Return whether a value matches a word, with * at its end; None: it names a set."""
    if word.startswith("@"):
        return None
    return value.startswith(word[:-1]) if word.endswith("*") else value == word


def _is_between(value: str, low: str, high: str) -> bool:
    try:
        if value.isdecimal():
            return int(low) <= int(value) <= int(high)
        low_ip, high_ip = ipaddress.IPv4Address(low), ipaddress.IPv4Address(high)
        return low_ip <= ipaddress.IPv4Address(value) <= high_ip
    except ValueError:
        return False


def _is_within(address: str, network: str) -> bool:
    try:
        return ipaddress.ip_address(address) in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False
