"""Whether a data set was cut by the tokenizer of the weights that are to be trained on it.

Owns that comparison, and what is said where they aren't the same: weights that others trained know
the ids of their own tokenizer alone. It is made at the leader, before anything is recorded.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from jupiterd.cluster.facts.facts import DataRequested, WorkCompleted
from jupiterd.cluster.ledger.state import State
from jupiterd.cycle.data.tokenizer_identity import TokenizerIdentity, difference
from jupiterd.daemon.artifacts.artifact_cache import ArtifactCache
from jupiterd.daemon.catalog.brought_tokenizer import read_identity
from jupiterd.daemon.catalog.dataset_catalog import find_data
from jupiterd.errors import NotFoundError, UsageError
from jupiterd.ids import ArtifactId

ARGUMENT: Final = "tokenizer_of_weights"
"""What the daemon that has the folder says of its tokenizer: a plain identity; empty: none."""

CUT_AGAIN: Final = "cut its text anew: jupiterctl data prepare TEXT --tokenizer FOLDER_OF_THE_MODEL"


def check_has_tokenizer(arguments: Mapping[str, Any], entries: int) -> None:
    """Raise UsageError where text is to be cut for weights whose tokenizer is none, or too large.

    entries: the tokens that the weights know
    """
    if ARGUMENT in arguments and not arguments[ARGUMENT]:
        raise UsageError(
            f"{arguments['model']} holds weights, but no tokenizer: text can't be cut for them",
            "put the files of its tokenizer beside the weights; a new one would have other ids",
        )
    said = TokenizerIdentity.from_plain(arguments.get(ARGUMENT) or {})
    if said.entries > entries:
        raise UsageError(
            f"the tokenizer of {arguments['model']} has {said.entries:,} kinds of tokens, and its "
            f"weights know {entries:,}",
            "put the files of the model's own tokenizer beside its weights",
        )


def cut_for_weights(arguments: Mapping[str, Any], data: DataRequested) -> DataRequested:
    """Return a data set that is made for a run, cut by the tokenizer that came with its weights."""
    if not arguments.get(ARGUMENT):
        return data
    return replace(data, tokenizer=str(arguments["weights"]))


async def check_same_tokenizer(
    state: State, artifact_cache: ArtifactCache, arguments: Mapping[str, Any]
) -> str:
    """Return what is to be said of data and weights; empty: their tokenizer is the same.

    Raises:
        NotFoundError: nobody in reach has the data set's tokenizer.
        UsageError: it was cut by another one.
    """
    if ARGUMENT not in arguments or "source" in arguments:  # none said so, or it is to be cut
        return ""
    data, prepared = find_data(state, str(arguments.get("data") or ""))
    if not (said := arguments[ARGUMENT]):
        return f"{arguments['model']} has no tokenizer to compare with that of {data.name}"
    theirs = await _tokenizer_of(artifact_cache, data, prepared)
    if why := difference(theirs, TokenizerIdentity.from_plain(said)):
        raise UsageError(
            f"the data set {data.name} was cut by another tokenizer than that of "
            f"{arguments['model']}: {why}",
            CUT_AGAIN,
        )
    return ""


async def _tokenizer_of(
    artifact_cache: ArtifactCache, data: DataRequested, prepared: WorkCompleted
) -> TokenizerIdentity:
    try:
        folder = await artifact_cache.ensure(ArtifactId(prepared.outputs["tokenizer"]))
    except NotFoundError as error:
        raise NotFoundError(
            f"nobody in reach has the tokenizer of the data set {data.name}",
            "start the machines that have it",
        ) from error
    return await asyncio.to_thread(read_identity, folder)
