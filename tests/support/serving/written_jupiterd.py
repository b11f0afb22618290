"""jupiterd as it is, but that its engines write what is agreed on, of a model that needs no files.

python -P tests/support/serving/written_jupiterd.py OPTIONS

Owns what is replaced: the engines, the catalogue's models, and who has their files. Sockets, links,
heartbeats, the router and the endpoint are those of any daemon.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).parents[3]))  # it is started in whatever folder

from jupiterd.daemon.app import answers_wiring
from jupiterd.daemon.artifacts.artifact_cache import ArtifactCache
from jupiterd.daemon.catalog.model_catalog import RUN, KnownModel
from jupiterd.daemon.serving import named_models
from jupiterd.ids import ArtifactId, CycleId, NodeId
from jupiterd.programs import jupiterd
from tests.support.serving.written_engines import WrittenEngines

NAME = "written"
ARTIFACT = ArtifactId("a" * 64)
TOKEN_S = 0.05

MODEL = KnownModel(
    ARTIFACT, RUN, CycleId("c" * 16), NAME, 1, None, None, None, verdict="", val_bpb=None, reason=""
)


async def bring(_: ArtifactCache, artifact: ArtifactId) -> Path:
    assert artifact == ARTIFACT
    return Path()


async def held_by(
    _: ArtifactCache, node: NodeId, artifacts: Sequence[ArtifactId], timeout_s: float
) -> tuple[NodeId, frozenset[ArtifactId], int]:
    del timeout_s
    return node, frozenset(artifacts), 0


def main() -> None:
    answers_wiring.pool_of = lambda _: WrittenEngines(token_s=TOKEN_S)  # type: ignore[assignment]
    named_models.models_of = lambda _: [MODEL]  # type: ignore[assignment]
    ArtifactCache.ensure, ArtifactCache.held_by = bring, held_by  # type: ignore[method-assign]
    sys.argv[0] = "jupiterd"
    jupiterd()


if __name__ == "__main__":
    main()
