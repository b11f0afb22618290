"""Finds out the kind of network that an interface leads to.

Owns the rules: first the interface's name, then what the system reports about it. Doesn't know
addresses.
"""

import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Final

from jupiterd.cluster.values.interface_kind import InterfaceKind

_BY_NAME: Final = (
    (InterfaceKind.THUNDERBOLT, re.compile(r"thunderbolt\d")),
    (InterfaceKind.VPN, re.compile(r"(tun|tap|utun|wg|tailscale|zt|ppp|ipsec|nebula)\d*|wg-.*")),
    (
        InterfaceKind.CONTAINER,
        re.compile(
            r"(docker|veth|br-|cni|podman|virbr|vnet|vmnet|lxc|lxdbr|cali|flannel|kube|dummy).*"
            # Apple's: AirDrop, low latency Wi-Fi, the access point, network processors
            r"|(awdl|llw|ap|anpi|gif|stf)\d+"
        ),
    ),
    (InterfaceKind.WIFI, re.compile(r"(wlan|wlp|wlx|wlo|wwan|wwp|ath)\w*")),
)
_PORTS: Final = (
    ("thunderbolt bridge", InterfaceKind.THUNDERBOLT),
    ("thunderbolt", InterfaceKind.ETHERNET),  # such as "Thunderbolt Ethernet Slot 1"
    ("wi-fi", InterfaceKind.WIFI),
    ("airport", InterfaceKind.WIFI),
)
_PORT = re.compile(r"^Hardware Port: (.*)\nDevice: (\S+)$", re.MULTILINE)
_SYSTEM_NETWORKS: Final = Path("/sys/class/net")
_ASK_TIMEOUT_S: Final = 5.0


@cache
def kind_of(interface: str) -> InterfaceKind:
    """Return the kind of an interface; Ethernet if neither its name nor the system tells a kind."""
    for kind, pattern in _BY_NAME:
        if pattern.fullmatch(interface):
            return kind
    if sys.platform == "darwin":
        return _mac_ports().get(interface, InterfaceKind.ETHERNET)
    return _linux_kind(_SYSTEM_NETWORKS / interface)


def kinds_of_ports(listing: str) -> dict[str, InterfaceKind]:
    """Parse the output of `networksetup -listallhardwareports` into device -> kind."""
    return {device: _kind_of_port(port) for port, device in _PORT.findall(listing)}


def _kind_of_port(port: str) -> InterfaceKind:
    for beginning, kind in _PORTS:
        if port.lower().startswith(beginning):
            return kind
    return InterfaceKind.ETHERNET


@cache
def _mac_ports() -> dict[str, InterfaceKind]:
    try:
        done = subprocess.run(
            ["/usr/sbin/networksetup", "-listallhardwareports"],
            capture_output=True,
            text=True,
            timeout=_ASK_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return {}
    return kinds_of_ports(done.stdout)


def _linux_kind(device: Path) -> InterfaceKind:
    if (device / "wireless").exists() or (device / "phy80211").exists():
        return InterfaceKind.WIFI
    if (device / "device" / "driver").resolve().name == "thunderbolt-net":
        return InterfaceKind.THUNDERBOLT
    if (device / "tun_flags").exists():
        return InterfaceKind.VPN
    return InterfaceKind.ETHERNET
