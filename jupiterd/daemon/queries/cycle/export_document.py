"""The document of `data export`: where the samples of a round lie on this machine.

Owns its keys. What isn't here is fetched from whoever has it. Reads no sample: jupiterctl does, on
the same machine, as the same user.
"""

from typing import Any

from jupiterd.daemon.artifacts.artifact_cache import ArtifactCache
from jupiterd.daemon.catalog.sample_locations import Output, outputs_of, shards_meant
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.document_schema import SCHEMA
from jupiterd.errors import NotFoundError, UsageError
from jupiterd.ids import CycleId


async def export_document(
    replica: Replica, artifact_cache: ArtifactCache, wanted: str
) -> dict[str, Any]:
    """Return the folders of RUN, its newest round, or of RUN/ROUND.

    Raises:
        NotFoundError: there is no such round, or nobody in reach has its samples.
        DiskFullError: there is no room for them here.
        UsageError: it is a data set, whose text lies where it was made of.
    """
    state = replica.state
    outputs = replica.derived(outputs_of)
    shards = shards_meant(outputs, wanted)
    if shards.kind != "cycle":
        made_of = state.cycles[CycleId(shards.run)].requested
        path = "" if made_of is None else f" of {made_of.source['path']}"
        raise UsageError(
            f"{shards.label} is a data set: tokens{path}", "export the data of a cycle's round"
        )
    filtered = [each for each in outputs if _is_filtered_for(each, shards)]
    shards_at, *filtered_at = [await _brought(artifact_cache, each) for each in (shards, *filtered)]
    exported = {
        "run": shards.run,
        "name": shards.label,
        "round": shards.round,
        "shards": shards_at,
        "samples": filtered_at,
        "purged": sorted(state.purged(shards.label, shards.run)),
    }
    return {"schema": SCHEMA, "export": exported}


async def _brought(artifact_cache: ArtifactCache, wanted: Output) -> str:
    try:
        return str(await artifact_cache.ensure(wanted.artifact))
    except NotFoundError as error:
        raise NotFoundError(
            f"the samples of {wanted.label}, round {wanted.round}, aren't all in reach",
            f"start {wanted.node_name}, which made them",
        ) from error


def _is_filtered_for(output: Output, shards: Output) -> bool:
    is_of_round = (output.run, output.round) == (shards.run, shards.round)
    return is_of_round and output.name == "kept"
