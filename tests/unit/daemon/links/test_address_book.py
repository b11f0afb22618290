"""Where peers answered, from one start to the next."""

import asyncio
from pathlib import Path

import pytest

from jupiterd.daemon.links.address_book import (
    MAX_SAVED,
    keep_addresses,
    load_addresses,
    save_addresses,
)
from jupiterd.ports import Address

ONE, SCOPED = Address("192.0.2.1", 1), Address("fe80::1%eth0", 2)


async def kept(path: Path, *in_use: Address) -> list[Address]:
    """Run a daemon's book for a moment, and return what the next one finds."""
    keeping = asyncio.ensure_future(keep_addresses(path, lambda: in_use))
    await asyncio.sleep(0)
    keeping.cancel()
    await asyncio.wait([keeping])
    return load_addresses(path)


async def test_what_is_in_use_at_the_end_is_known_at_the_next_start(tmp_path: Path) -> None:
    assert await kept(tmp_path / "peers", ONE, SCOPED) == [ONE, SCOPED]


async def test_a_machine_that_is_off_is_not_forgotten(tmp_path: Path) -> None:
    await kept(tmp_path / "peers", ONE)
    assert await kept(tmp_path / "peers", SCOPED) == [SCOPED, ONE]
    assert await kept(tmp_path / "peers") == [SCOPED, ONE]


async def test_what_is_known_is_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "peers"
    many = [Address("192.0.2.1", port) for port in range(1, 2 * MAX_SAVED)]
    await kept(path, *many)
    written = path.stat()
    await kept(path, *reversed(many))
    await kept(path, ONE)
    assert path.stat() == written


async def test_so_many_are_kept_and_no_more(tmp_path: Path) -> None:
    many = [Address("192.0.2.1", port) for port in range(1, 3 * MAX_SAVED)]
    assert await kept(tmp_path / "peers", *many) == many[:MAX_SAVED]


@pytest.mark.parametrize("text", ["", "{", "[1]", '[{"host": 1}]', '{"host": "a"}', "null"])
def test_a_file_that_is_none_of_ours_says_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "peers").write_text(text)
    assert load_addresses(tmp_path / "peers") == []
    assert load_addresses(tmp_path / "none") == []


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    save_addresses(tmp_path / "peers", [SCOPED])
    assert load_addresses(tmp_path / "peers") == [SCOPED]
