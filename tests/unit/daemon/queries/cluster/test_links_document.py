"""The picture of the cluster that front ends draw."""

from pathlib import Path

from tests.support.daemon.shown import shown
from tests.support.daemon.two_nodes import found, link, serving, take_for_alive, unite


async def test_a_node_alone_has_no_link(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one)
        assert (await shown(one, "links"))["links"] == []


async def test_each_pair_of_members_is_a_row_and_what_nobody_measured_is_null(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "two") as two:
        await found(one, two)
        await unite(one, two)
        await link(one, two)
        take_for_alive(one, two)
        (row,) = (await shown(one, "links"))["links"]
        assert set(row["nodes"]) == {one.identity.node_id, two.identity.node_id}
        assert (row["bits_per_s"], row["kind"]) == (None, "loopback")
