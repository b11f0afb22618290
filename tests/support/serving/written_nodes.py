"""Nodes of tests whose engines are the test's own."""

from jupiterd.daemon.app.node import Node
from tests.support.serving.written_engines import WrittenEngines


def give_engines(node: Node, engines: WrittenEngines | None = None) -> WrittenEngines:
    """Let a node answer with these engines, which need no files."""
    written = engines or WrittenEngines()

    async def bring(_: object) -> None:
        return None

    node.artifact_cache.ensure = bring
    node.serving.engines._pool = written
    return written
