"""Reading what gloo's ranks tell each other of link-local addresses, as seen from here."""

import random
import socket
import sys
from typing import Any

from torch.distributed import HashStore  # pyright: ignore[reportPrivateImportUsage]

from jupiterd.workers.train.torch.link_local import LinkLocalStore, on_link, read_on_link

THERE, HERE = 5, 2


def told(text: str, scope: int) -> bytes:
    """Return an address with the number of an interface, as sockaddr_in6 ends."""
    return socket.inet_pton(socket.AF_INET6, text) + scope.to_bytes(4, sys.byteorder)


def test_each_link_local_address_gets_our_number_and_nothing_else_changes() -> None:
    chance = random.Random(7)
    around = [chance.randbytes(26).replace(b"\xfe", b"\x00") for _ in range(3)]
    both = told("fe80::1", THERE), told("fe80::ff:fe00:2", THERE)
    mended = told("fe80::1", HERE), told("fe80::ff:fe00:2", HERE)
    assert on_link(around[0].join(both) + around[1], HERE) == around[0].join(mended) + around[1]
    global_one = around[2] + told("2001:db8::1", THERE)
    assert on_link(global_one, HERE) == global_one


def test_an_address_that_is_cut_off_is_left_alone() -> None:
    cut = told("fe80::1", THERE)[:-1]
    assert on_link(cut, HERE) == cut


def test_a_store_is_read_as_from_the_link_that_its_host_names() -> None:
    inner: Any = HashStore()
    inner.set("rank", told("fe80::1", THERE + 1000))
    loopback = socket.if_nametoindex("lo" if sys.platform == "linux" else "lo0")
    name = socket.if_indextoname(loopback)
    assert read_on_link(inner, f"fe80::2%{name}").get("rank") == told("fe80::1", loopback)
    assert read_on_link(inner, "10.0.0.1") is inner


def test_it_does_all_that_the_store_behind_it_does() -> None:
    inner: Any = HashStore()
    store: Any = LinkLocalStore(inner, HERE)
    assert store.compare_set("a", "", "1") == b"1"
    assert store.compare_set("a", "2", "3") == b"1"
    assert (store.num_keys(), inner.num_keys()) == (1, 1)
    assert store.getNumKeys() == 1
    assert store.deleteKey("a")
    assert store.num_keys() == 0
