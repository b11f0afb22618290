"""When old checkpoints go from a node's disk."""

from pathlib import Path

from jupiterd.daemon.node import Node
from jupiterd.daemon.retention import GRACE_S, Retention
from jupiterd.ids import ArtifactId
from tests.unit.cluster.building import checkpoint, data_asked, pinned, training
from tests.unit.daemon.two_nodes import found, serving


def taken_in(node: Node, folder: Path, count: int) -> list[ArtifactId]:
    made: list[ArtifactId] = []
    for number in range(count):
        file = folder / f"weights-{number}"
        file.write_text(str(number))
        made.append(node.library.store.ingest(file))
    return made


async def test_old_checkpoints_go_after_the_grace_and_nothing_else(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        *line, other = taken_in(one, tmp_path, 7)
        parents = ["", *line]
        facts = [
            checkpoint(artifact, parents[number], tokens=100 + number)
            for number, artifact in enumerate(line)
        ]
        await found(one, facts=(data_asked(), training(), *facts))
        store = one.library.store
        retention = Retention(one.journal, store)
        await retention.look(0.0)
        await retention.look(GRACE_S - 1)
        assert set(store.ids()) == {*line, other}
        await one.journal.append(2, [pinned(line[1])])  # needed again, and no more
        await retention.look(GRACE_S)
        assert set(store.ids()) == {*line[1:2], *line[3:], other}
