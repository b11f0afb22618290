"""Where ranks meet that are all on one machine."""

from pathlib import Path

from jupiterd.daemon.gangs.rendezvous import prove_routes
from tests.support.daemon.two_nodes import lead, serving


async def test_ranks_of_one_machine_alone_meet_over_its_loopback(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as node:
        await lead(node)
        assert node.leading is not None
        own = node.identity.node_id
        places = await prove_routes(node.leading.connectivity, (own, own), reserve=False)
        assert list(places) == [own]
        assert places[own].host == "127.0.0.1"
        assert places[own].interface.startswith("lo")
