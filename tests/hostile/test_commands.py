"""Every command, with arguments that are missing or no such as it needs: refused in words.

Whoever sends them may be a program of the user's own, or a jupiterctl of another version.
"""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from jupiterd.daemon.app.node import Node
from jupiterd.errors import JupiterError, UsageError
from jupiterd.protocol.commands.command import HINT
from jupiterd.rpc import peer_pb2
from tests.hostile.fuzzing import fuzz
from tests.support.daemon.two_nodes import TIMEOUT_S, lead, serving, unite
from tests.unit.daemon.api.test_peer_service import channels

pytestmark = pytest.mark.net

NEEDED = {
    "cluster.merge": {"cluster"},
    "cluster.rename": {"name"},
    "cluster.switch": {"cycle", "leaf"},
    "cluster.withdraw": {"token"},
    "cycle.plan": {"domain_name", "domain_yaml"},
    "cycle.start": {"domain_name", "domain_yaml"},
    "check.links": {"node"},
    "data.prepare": {"name", "source"},
    "data.purge": {"source"},
    "data.remove": {"data"},
    "node.approve": {"node"},
    "node.remove": {"node"},
    "node.role": {"node", "role"},
    "node.trust": {"node"},
    "script.prepare": {"engine", "folder", "nodes", "program", "script"},
    "script.knocked": {"count", "hosts"},
    "script.ship": {"files", "folder", "nodes"},
    "train.start": {"model"},
}
"""What each command can't do without; the others need nothing."""

OF_THIS_MACHINE = {"check.links", "script.knocked", "script.prepare", "script.ship"}
"""What the daemon that is asked does itself: members can't send it."""

GIVEN: dict[str, Any] = {
    "source": {"kind": "folder", "path": "/nowhere"}, "files": [], "nodes": [], "model": "1m",
    "role": "auto", "count": 1, "hosts": [],
}  # fmt: skip
"""What gets a command past one argument to the next; else any word does."""

NAMES: tuple[str, ...] = (
    "alarms", "arguments", "asked_at", "auto", "because", "begins_with", "bytes_per_s", "cluster",
    "config", "count", "cycle", "data", "devices", "domain", "domain_name", "domain_yaml", "done",
    "ended", "engine", "environment", "files", "folder", "folder_map", "from", "generator",
    "generator_folder", "hosts", "init", "interactive", "is_start", "judge", "keys", "leaf",
    "model", "name", "names", "node", "nodes", "per_node", "program", "role", "rounds", "run",
    "script", "seed", "settings", "source", "to_fetch", "token", "tokenizer", "tokens", "total",
    "train", "training", "uses", "verb", "weights", "weights_folder", "words",
)  # fmt: skip
ODD: list[Any] = [
    "x", "", "1", 3, -1, None, [], ["x"], {}, {"x": "y"}, {"kind": "folder"}, True, 1.5,
]  # fmt: skip


def verbs_of(node: Node) -> list[str]:
    """Return all commands but the one that only measures, and the one that ends a term."""
    return sorted(node.commands.verbs - {"check.sync", "cluster.hand_over"})


async def test_each_argument_that_is_left_out_is_named(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await lead(one)
        needed: dict[str, set[str]] = {}
        for verb in verbs_of(one):
            given: dict[str, Any] = {}
            while (missing := await missing_argument(one, verb, given)) is not None:
                assert missing not in given
                needed.setdefault(verb, set()).add(missing)
                given[missing] = GIVEN.get(missing, "x")
            for name in given:
                rest = {each: value for each, value in given.items() if each != name}
                assert await missing_argument(one, verb, rest) == name
                assert await missing_argument(one, verb, {**rest, name: None}) == name
        assert needed == NEEDED


async def missing_argument(node: Node, verb: str, given: dict[str, Any]) -> str | None:
    """Give a command; return the argument that it lacks."""
    refusal = await refusal_of(node, verb, given)
    begin, _, rest = str(refusal and refusal.message).partition(" came without ")
    if refusal is None or not rest:
        return None
    assert (begin, refusal.code, refusal.hint) == (verb, UsageError.code, HINT)
    return rest.partition(",")[0]


async def refusal_of(node: Node, verb: str, given: dict[str, Any]) -> JupiterError | None:
    """Give a command; return how it is refused."""
    try:
        await node.commands.execute(verb, given)
    except JupiterError as error:
        return error
    return None


async def test_arguments_of_another_kind_are_refused_in_words(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await lead(one)

        async def give(command: tuple[str, dict[str, Any]]) -> None:
            refusal = await refusal_of(one, *command)
            assert refusal is None or "\n" not in refusal.message

        names: st.SearchStrategy[str] = st.sampled_from(NAMES)
        odd = st.dictionaries(names, st.sampled_from(ODD), max_size=6)
        await fuzz(120, st.tuples(st.sampled_from(verbs_of(one)), odd), give)


async def test_a_member_s_command_without_arguments_is_no_fault_of_ours(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await unite(one, other)
        await lead(one)
        control = channels(other, one).control
        for verb in sorted(NEEDED.keys() - OF_THIS_MACHINE):
            request = peer_pb2.CommandRequest(verb=verb, arguments_json="{}")
            failure = (await control.Command(request, timeout=TIMEOUT_S)).failure
            assert failure.code == UsageError.code, verb
            assert " came without " in failure.message
        assert not one.refusals.to_plain()
