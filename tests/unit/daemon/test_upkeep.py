"""Second copies, when a holder has gone."""

from pathlib import Path

import pytest

from jupiterd.cluster import copies
from jupiterd.daemon.upkeep import Upkeep
from tests.unit.cluster.building import checkpoint, data_asked, training
from tests.unit.daemon.test_library import taken_in, three
from tests.unit.daemon.two_nodes import lead

pytestmark = pytest.mark.net


async def test_what_one_node_alone_has_is_copied_to_another_and_then_nobody_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "LITTLE_BYTES", 1)
    async with three(tmp_path) as nodes:
        one, *others = nodes
        artifact, _ = taken_in(one, tmp_path)
        stray = tmp_path / "stray"
        stray.write_text("named by nobody")
        unnamed = one.library.store.ingest(stray)
        await lead(one)
        leading = one.leading
        assert leading is not None
        leading.answering = one.library._alive
        await one.journal.append(1, [data_asked(), training(), checkpoint(artifact)])
        upkeep = Upkeep(one)
        upkeep._alive = one.library._alive()
        await upkeep.look(leading)
        (second,) = [node for node in others if node.library.store.holds(artifact)]
        assert not any(node.library.store.holds(unnamed) for node in others)
        await upkeep.look(leading)  # all is well
        asked: list[object] = []
        monkeypatch.setattr(one.library, "held_by", asked.append)
        await upkeep.look(leading)
        assert asked == []
        monkeypatch.undo()
        monkeypatch.setattr(copies, "LITTLE_BYTES", 1)
        one.library.store.remove(artifact)  # as if its machine had gone
        upkeep._alive = frozenset(node.identity.node_id for node in (one, *others[:1], *others[1:]))
        upkeep._seen = None
        await upkeep.look(leading)
        assert sum(node.library.store.holds(artifact) for node in nodes) == 2
        assert second.library.store.holds(artifact)
