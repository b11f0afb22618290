"""A model of the hub: its configuration is on this machine, its weights may not be yet.

Owns the first requests (a few KB), and the fallback if the hub can't be reached: the copy in the
library's cache. Doesn't download weights.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from jupiterd.ctl.hub.asking import check_library
from jupiterd.ctl.hub.download import draft_of
from jupiterd.ctl.hub.listing import HubFile, HubListing, listing_of
from jupiterd.ctl.hub.listing_diagnosis import (
    CONFIG,
    check_index,
    check_kinds,
    check_listing,
    wanted_files,
)
from jupiterd.ctl.hub.names import HubName
from jupiterd.ctl.hub.snapshot import cached_snapshot, fetched, snapshot_of
from jupiterd.ctl.sources.folder_diagnosis import index_of
from jupiterd.cycle.base.model_files import INDEX, missing_files, weight_files
from jupiterd.cycle.training.adapters.given_quantized import given_bits
from jupiterd.errors import JupiterError, SourceUnreachableError


@dataclass(frozen=True)
class HubModel:
    """A model of the hub at one commit."""

    listing: HubListing
    folder: Path
    """The snapshot of that commit in the library's cache; config.json is there."""
    wanted: tuple[HubFile, ...]
    """All its files that are read."""

    @property
    def missing(self) -> list[HubFile]:
        """Return the files that are still to be downloaded."""
        return [file for file in self.wanted if not (self.folder / file.name).exists()]

    @property
    def missing_words(self) -> list[HubFile]:
        """Return the missing files that hold no weights, such as the tokenizer's."""
        return [file for file in self.missing if not file.name.endswith(".safetensors")]

    @property
    def missing_bytes(self) -> int:
        """Return how many bytes are still to be downloaded; partial files count as here."""
        drafts = (draft_of(file, self.folder) for file in self.missing if file.sha256)
        here = sum(draft.stat().st_size for draft in drafts if draft.exists())
        return max(0, sum(file.size for file in self.missing) - here)


def found(name: HubName, *, is_trained: bool) -> HubModel:
    """Look a model up on the hub and download its configuration.

    Args:
        name: the model.
        is_trained: the model is to be trained, not only run.

    Raises:
        MissingExtraError: the library isn't installed.
        UsageError: it doesn't hold a model's weights in a form that is read.
        CorruptArtifactError: a file of its weights isn't on the hub.
        JupiterError: there is no such model, we have no access, or the hub can't be reached.
    """
    check_library()
    try:
        listing = listing_of(name)
    except SourceUnreachableError as error:
        return _in_cache(name, error)
    check_listing(listing)
    folder = snapshot_of(listing, CONFIG)
    if is_trained:
        check_kinds(listing, is_packed=_is_packed(folder))
    if INDEX in listing.names:
        fetched(HubName(name.repository, listing.commit), INDEX)
    index = index_of(folder)
    check_index(listing, index)
    weights = weight_files(listing.names, index)
    return HubModel(listing, folder, tuple(wanted_files(listing, frozenset(weights))))


def _is_packed(folder: Path) -> bool:
    """Say whether a configuration calls the weights quantized for MLX; who reads it refuses it."""
    try:
        said: object = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(said, dict) and given_bits(cast("dict[str, Any]", said)) is not None


def _in_cache(name: HubName, why: JupiterError) -> HubModel:
    """Return the copy in the library's cache, if it is complete.

    Raises:
        JupiterError: `why`; the cache has no complete copy.
    """
    folder = cached_snapshot(name, CONFIG, why)
    names = sorted(path.name for path in folder.iterdir())
    if missing_files([*names, "tokenizer.json"], index_of(folder)):
        raise why
    listing = HubListing(name, folder.name, _files(folder, names))
    return HubModel(listing, folder, ())


def _files(folder: Path, names: Sequence[str]) -> tuple[HubFile, ...]:
    return tuple(HubFile(each, (folder / each).stat().st_size) for each in names)
