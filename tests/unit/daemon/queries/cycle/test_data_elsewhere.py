"""What `data list` and `data export` say on a node that lacks the data, while another has it."""

from pathlib import Path

import pytest

from jupiterd.ctl.data.data_export import write_export
from jupiterd.daemon.queries.cycle import round_data
from jupiterd.daemon.queries.cycle.export_document import export_document
from jupiterd.daemon.queries.cycle.run_documents import data_document
from jupiterd.errors import NotFoundError
from tests.unit.daemon.queries.cluster.test_cluster_trace import KEPT, two_holders

pytestmark = pytest.mark.net


async def test_every_node_lists_the_data_of_rounds_alike_and_fetches_none_of_it(
    tmp_path: Path,
) -> None:
    async with two_holders(tmp_path, "shards") as (one, other, made):
        (here,) = (await data_document(one.observers.sources, ""))["rounds"]
        (there,) = (await data_document(other.observers.sources, ""))["rounds"]
        assert (here["held_here"], there["held_here"]) == (False, True)
        assert here["contents"]["kind"] == {"real": 40, "synthetic": 2}
        assert {**here, "held_here": True} == there
        assert not one.artifact_cache.store.holds(made["shards"])


async def test_a_list_does_not_wait_for_what_nobody_sends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(round_data, "READ_TIMEOUT_S", 0.0)
    async with two_holders(tmp_path, "shards") as (one, _, _):
        (row,) = (await data_document(one.observers.sources, ""))["rounds"]
        assert (row["name"], row["contents"]) == ("python", None)


async def test_what_is_exported_comes_from_whoever_has_it(tmp_path: Path) -> None:
    async with two_holders(tmp_path, "shards kept") as (one, other, made):
        exported = (await export_document(one.replica, one.artifact_cache, "python"))["export"]
        assert exported["samples"] == [str(one.artifact_cache.store.path(made["kept"]))]
        assert write_export(exported, "jsonl", tmp_path / "out.jsonl") == len(KEPT)
        for node in (one, other):
            node.artifact_cache.store.remove(made["kept"])
        with pytest.raises(NotFoundError, match="aren't all in reach"):
            await export_document(one.replica, one.artifact_cache, "python")
