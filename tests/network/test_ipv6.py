"""Machines that have IPv6 alone, and no router: link-local addresses, each with its scope."""

from pathlib import Path

import pytest

from tests.support.daemons.cluster import running
from tests.support.daemons.training_runs import write_letters
from tests.support.network import links
from tests.support.network.lab import lab_of
from tests.support.network.machines import Machine, Machines, machines_of, sees

pytestmark = pytest.mark.timeout(120)

JOIN_S = 15.0


@pytest.mark.smoke
async def test_two_machines_with_ipv6_alone_find_each_other(tmp_path: Path) -> None:
    with lab_of(2) as lab:
        for host in lab.hosts:
            links.forget_ipv4(host)
        async with machines_of(lab, tmp_path) as machines:
            views = await machines.one_cluster(JOIN_S)
            one, other = lab.hosts
            shown = {node["name"]: node["addresses"] for node in views[0]["nodes"]}
            assert shown["m1"] == [f"[{links.link_local(one)}%eth0]:47470"]
            assert shown["m2"] == [f"[{links.link_local(other)}%eth0]:47470"]


async def test_a_link_local_address_is_looked_for_on_every_link(
    tmp_path: Path, packet_filter: None
) -> None:
    """Without multicast, and on the second link only, one is told of the other without a scope."""
    with lab_of(2) as lab:
        lab.add_switch(1)
        one, other = lab.hosts
        for host in lab.hosts:
            host.plug_in(1)
            links.forget_ipv4(host)
            links.forget_ipv4(host, 1)
            links.silence_multicast(host)
        links.pull(other)
        told = Machine(tmp_path, one, ["--peer", f"[{links.link_local(other, 1)}]:47470"])
        async with running([told, Machine(tmp_path, other)]) as pair:
            machines = Machines([told, *pair.daemons[1:]], lab)
            await machines.one_cluster(JOIN_S)


async def test_a_scoped_address_is_taken_on_the_command_line_and_kept_for_the_next_start(
    tmp_path: Path, packet_filter: None
) -> None:
    with lab_of(2) as lab:
        one, other = lab.hosts
        for host in lab.hosts:
            links.forget_ipv4(host)
            links.silence_multicast(host)
        peer = f"[{links.link_local(other)}%eth0]:47470"
        told, second = Machine(tmp_path, one, ["--peer", peer]), Machine(tmp_path, other)
        async with running([told, second]):
            machines = Machines([told, second], lab)
            (view, *_) = await machines.one_cluster(JOIN_S)
            told.stop()
            second.stop()
            for machine in (told, second):
                assert machine.process is not None
                assert machine.process.wait(10) == 0
            assert (
                peer.rpartition(":")[0].strip("[]") in (told.state_dir / "peers.json").read_text()
            )
            told.options = ()
            told.start()
            second.start()
            again = await machines.one_cluster(JOIN_S)
            assert again[0]["cluster"]["id"] == view["cluster"]["id"]
            assert sees(again[0], view["node"]["id"])


async def test_two_machines_with_link_local_addresses_alone_train_together(tmp_path: Path) -> None:
    """Each knows the link by a number of its own, which gloo tells the other as if it were its."""
    letters = write_letters(tmp_path, lines=4)
    with lab_of(2) as lab:
        links.renumber(lab.hosts[1])
        for host in lab.hosts:
            links.forget_ipv4(host)
        async with machines_of(lab, tmp_path) as machines:
            await machines.one_cluster(JOIN_S)
            command = ("train", "start", "--data", str(letters), "--model", "1m", "--wait")
            size = ("--seq-len", "32", "--max-steps", "12", "--gradient-accumulation-steps", "2")
            ended = machines.ctl(
                *command, *size, "--engine", "torch", "--islands", "off", "--timeout", "50"
            )
            assert ended.returncode == 0, machines.failure_text(ended.stderr)
            (run,) = machines[0].state().cycles.values()
            assert [len(set(opened.gang)) for opened in run.attempts_opened.values()] == [2]
