"""Does this machine's firewall accept connections from other nodes?

Owns reading the firewalls of Linux and macOS, and the finding. Never changes rules: the fix is a
command for the user. Doesn't know Windows' own firewall (`wsl`).
"""

import ipaddress
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jupiterd.doctor.examined_machine import DISCOVERY_PORT, ExaminedMachine
from jupiterd.doctor.finding import Finding, fail, not_here, ok, warn
from jupiterd.doctor.lan import Network, networks
from jupiterd.doctor.nft_ruleset import Packet, PacketOutcome, outcome
from jupiterd.doctor.system_command import NOT_RUN, CommandOutput, run_command

CHECK: Final = "firewall"
MAC_FIREWALL: Final = "/usr/libexec/ApplicationFirewall/socketfilterfw"
UFW_SETTINGS: Final = Path("/etc/ufw/ufw.conf")
MULTICAST_GROUP: Final = "224.0.0.251"
GANG_PORT: Final = 40000
"""An example of the ports that the system chooses for gangs and for the members' port."""


@dataclass(frozen=True)
class FirewallReading:
    """The state of the system's firewall."""

    system: str
    port: int
    networks: tuple[Network, ...]
    ruleset: CommandOutput = NOT_RUN
    """The output of `nft --json list ruleset`, which needs root."""
    ufw: str = ""
    """ufw's settings, which every user may read; empty: ufw isn't installed."""
    firewalld: CommandOutput = NOT_RUN
    """The output of `firewall-cmd --state`."""
    mac: CommandOutput = NOT_RUN


def read(machine: ExaminedMachine) -> FirewallReading:
    """Return what the installed tools report."""
    found = tuple(networks(machine.interfaces)) if not machine.local else ()
    if machine.system == "Darwin":
        mac = run_command(MAC_FIREWALL, "--getglobalstate")
        return FirewallReading(machine.system, machine.port, found, mac=mac)
    return FirewallReading(
        machine.system,
        machine.port,
        found,
        ruleset=run_command("nft", "--json", "list", "ruleset"),
        ufw=_text(UFW_SETTINGS),
        firewalld=run_command("firewall-cmd", "--state"),
    )


def judge(reading: FirewallReading) -> Finding:
    """Return the finding, as far as the rules can be read."""
    if not reading.networks:
        return not_here(CHECK, "this daemon speaks to no other machine")
    if reading.system == "Darwin":
        return _judge_mac(reading)
    if reading.ruleset.has_succeeded:
        return _judge_rules(reading)
    return _judge_tools(reading)


def _judge_mac(reading: FirewallReading) -> Finding:
    if not reading.mac.has_succeeded:
        return warn(CHECK, "the firewall's state can't be read", f"{MAC_FIREWALL} --getglobalstate")
    if re.search(r"State = 0|disabled", reading.mac.text):
        return ok(CHECK, "the firewall of macOS is off")
    return warn(
        CHECK,
        "the firewall of macOS is on: it asks once whether Python may take connections",
        f"sudo {MAC_FIREWALL} --add $(which jupiterd) --unblockapp $(which jupiterd), or System "
        "Settings > Network > Firewall > Options",
    )


def _judge_rules(reading: FirewallReading) -> Finding:
    outcomes = {
        name: _worst(reading, protocol, port) for name, protocol, port in _needed(reading.port)
    }
    dropped = [name for name, found in outcomes.items() if found is PacketOutcome.DROPPED]
    unsure = [name for name, found in outcomes.items() if found is PacketOutcome.UNSURE]
    if dropped:
        return fail(CHECK, f"the firewall drops {_listed(dropped)}", _fix(reading))
    if unsure:
        why = f"the firewall has rules that aren't understood: {_listed(unsure)} may not get in"
        return warn(CHECK, why, f"if other nodes can't get through: {_fix(reading)}")
    return ok(CHECK, "the packet filter lets other nodes in")


def _judge_tools(reading: FirewallReading) -> Finding:
    if "ENABLED=yes" in reading.ufw or reading.firewalld.has_succeeded:
        name = "ufw" if "ENABLED=yes" in reading.ufw else "firewalld"
        why = f"{name} is on, and only root may read its rules"
        return warn(CHECK, why, f"if other nodes can't get through: {_fix(reading)}")
    if reading.ruleset.exit_code is None:
        return ok(CHECK, "no firewall was found (nft, ufw and firewalld aren't here)")
    why = "only root may read the rules of the packet filter"
    return warn(CHECK, why, 'sudo nft list ruleset, or: sudo "$(command -v jupiterd)" doctor')


def _needed(port: int) -> list[tuple[str, str, int]]:
    """Return (description, protocol, port) of the traffic that must be accepted."""
    daemon = [(f"TCP port {port} (jupiterd)", "tcp", port)] if port else []
    return [
        *daemon,
        (f"UDP port {DISCOVERY_PORT} (multicast DNS)", "udp", DISCOVERY_PORT),
        ("the TCP ports of members and gangs, which the system chooses", "tcp", GANG_PORT),
    ]


def _worst(reading: FirewallReading, protocol: str, port: int) -> PacketOutcome:
    outcomes = [
        outcome(
            reading.ruleset.text,
            Packet(
                protocol,
                port,
                network.interface,
                _neighbour(network),
                MULTICAST_GROUP if port == DISCOVERY_PORT else network.address,
            ),
        )
        for network in reading.networks
    ]
    # Accepting on one network is enough.
    for best in (PacketOutcome.ACCEPTED, PacketOutcome.UNSURE):
        if best in outcomes:
            return best
    return PacketOutcome.DROPPED


def _neighbour(network: Network) -> str:
    """Return another address in the network: the first that isn't ours."""
    hosts = ipaddress.ip_network(network.subnet).hosts()
    return next((str(host) for host in hosts if str(host) != network.address), network.address)


def _fix(reading: FirewallReading) -> str:
    subnet = reading.networks[0].subnet
    if "ENABLED=yes" in reading.ufw:
        return f"sudo ufw allow from {subnet}"
    if reading.firewalld.has_succeeded:
        source = f"sudo firewall-cmd --permanent --zone=trusted --add-source={subnet}"
        return f"{source} && sudo firewall-cmd --reload"
    table, chain = _dropping_chain(reading.ruleset.text)
    return f"sudo nft insert rule {table} {chain} ip saddr {subnet} accept"


def _dropping_chain(ruleset_json: str) -> tuple[str, str]:
    """Return (family and table, chain) of the input chain for a new rule; a dropping one first."""
    try:
        objects: list[Any] = json.loads(ruleset_json)["nftables"]
    except (ValueError, KeyError):
        objects = []
    chains: list[Any] = [row["chain"] for row in objects if "chain" in row]
    found = [c for c in chains if c.get("hook") == "input" and c.get("family") in {"ip", "inet"}]
    inputs = sorted(found, key=_lets_in)
    if not inputs:
        return "inet filter", "input"
    return f"{inputs[0]['family']} {inputs[0]['table']}", str(inputs[0]["name"])


def _lets_in(chain: Any) -> bool:  # noqa: ANN401 - decoded JSON
    return bool(chain.get("policy") != "drop")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
