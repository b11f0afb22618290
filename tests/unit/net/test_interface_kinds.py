"""Which interface is worth more."""

from pathlib import Path

import pytest

from jupiterd.cluster.values.interface_kind import InterfaceKind
from jupiterd.net import interface_kinds
from jupiterd.net.interface_kinds import kind_of, kinds_of_ports

MAC = """
Hardware Port: Ethernet
Device: en0
Ethernet Address: 00:00:5e:00:53:01

Hardware Port: Thunderbolt Ethernet Slot 1
Device: en7
Ethernet Address: 00:00:5e:00:53:02

Hardware Port: Thunderbolt Bridge
Device: bridge0
Ethernet Address: 00:00:5e:00:53:03

Hardware Port: Wi-Fi
Device: en1
Ethernet Address: 00:00:5e:00:53:04
"""


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("thunderbolt0", InterfaceKind.THUNDERBOLT),
        ("wlan0", InterfaceKind.WIFI),
        ("wlp3s0", InterfaceKind.WIFI),
        ("utun4", InterfaceKind.VPN),
        ("wg0", InterfaceKind.VPN),
        ("tailscale0", InterfaceKind.VPN),
        ("docker0", InterfaceKind.CONTAINER),
        ("br-5e1f00ba4a11", InterfaceKind.CONTAINER),
        ("veth3f2a9c1", InterfaceKind.CONTAINER),
        ("virbr0", InterfaceKind.CONTAINER),
        ("cni-podman0", InterfaceKind.CONTAINER),
        ("awdl0", InterfaceKind.CONTAINER),
    ],
)
def test_a_name_that_says_it_all_is_believed(name: str, kind: InterfaceKind) -> None:
    assert kind_of(name) is kind


def test_the_kinds_are_in_the_order_in_which_they_are_used() -> None:
    assert [kind.label for kind in sorted(InterfaceKind)] == [
        "Thunderbolt",
        "Ethernet",
        "Wi-Fi",
        "VPN",
        "container",
    ]
    assert [kind.is_physical for kind in sorted(InterfaceKind)] == [True] * 3 + [False] * 2


def test_a_mac_tells_what_its_ports_are() -> None:
    assert kinds_of_ports(MAC) == {
        "en0": InterfaceKind.ETHERNET,
        "en7": InterfaceKind.ETHERNET,
        "bridge0": InterfaceKind.THUNDERBOLT,
        "en1": InterfaceKind.WIFI,
    }
    assert kinds_of_ports("") == {}


def test_linux_tells_what_a_device_is(tmp_path: Path) -> None:
    for device in ("enp1s0/device", "radio7/phy80211", "odd0", "tb/device"):
        (tmp_path / device).mkdir(parents=True)
    (tmp_path / "odd0" / "tun_flags").touch()
    (tmp_path / "thunderbolt-net").mkdir()
    (tmp_path / "tb" / "device" / "driver").symlink_to(tmp_path / "thunderbolt-net")
    kinds = [
        interface_kinds._linux_kind(tmp_path / name)
        for name in ("enp1s0", "radio7", "odd0", "tb", "none")
    ]
    assert kinds == [
        InterfaceKind.ETHERNET,
        InterfaceKind.WIFI,
        InterfaceKind.VPN,
        InterfaceKind.THUNDERBOLT,
        InterfaceKind.ETHERNET,
    ]
