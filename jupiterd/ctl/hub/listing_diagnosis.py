"""Checks of a model of the hub by the names of its files, before they are downloaded.

Pure. Owns those checks; `folder_diagnosis` makes them for folders, with the same messages.
`cycle.training.architectures` decides whether an architecture can be trained.
"""

import re
from fnmatch import fnmatchcase

from jupiterd.adapter_folder import ADAPTER_CONFIG, MERGE
from jupiterd.ctl.hub.listing import HubFile, HubListing
from jupiterd.ctl.sources.folder_diagnosis import (
    CONVERT,
    OF_MASKS,
    OTHER_FORMS,
    PACKED,
    TRAINED,
    unnamed_weights,
)
from jupiterd.cycle.base.model_files import GENERATOR_FILES, INDEX, WHOLE, missing_files
from jupiterd.cycle.training.adapters.given_quantized import WHOLE as OF_QUANTIZED
from jupiterd.errors import CorruptArtifactError, JupiterError, UsageError

CONFIG = "config.json"

_shard = re.compile(r"(.+)-(\d{5})-of-(\d{5})\.safetensors").fullmatch


def check_listing(listing: HubListing) -> None:
    """Raise if a model doesn't hold a whole set of weights in a form that is read.

    Raises:
        UsageError: it holds an adapter, no configuration, or no weights as safetensors.
        CorruptArtifactError: a file of its weights is missing.
    """
    names = listing.names
    if ADAPTER_CONFIG in names:
        base = f" for {listing.base}" if listing.base else ""
        raise UsageError(f"{listing.name} is a LoRA adapter{base}, not a model", MERGE)
    if not _weights(names):
        raise _without_safetensors(listing)
    if CONFIG not in names:
        raise UsageError(
            f"{listing.name} has no {CONFIG}: it is no model that transformers can load",
            _base_model_hint(listing) or "give the id of a causal language model",
        )
    if not {WHOLE, INDEX} & set(names):
        raise unnamed_weights(str(listing.name), names)
    if missing := sorted(_expected_shards(names) - set(names)):
        raise _lacks(listing, missing)


def check_kinds(listing: HubListing, *, is_packed: bool = False) -> None:
    """Raise UsageError if the weights have a dtype that can't be trained.

    is_packed: its config.json says that they are quantized for MLX
    """
    packed = {PACKED} if is_packed else frozenset[str]()
    strange = sorted(listing.kinds.keys() - TRAINED - OF_MASKS - packed)
    if strange:
        raise UsageError(
            f"{listing.name} holds weights of dtype {strange[0]}, and such ones can't be trained",
            _base_model_hint(listing) or OF_QUANTIZED,
        )


def check_index(listing: HubListing, index: str) -> None:
    """Raise CorruptArtifactError if the hub lacks a file that the weights' index names."""
    missing = missing_files([*listing.names, "tokenizer.json"], index)
    if missing:
        raise _lacks(listing, missing)


def wanted_files(listing: HubListing, weights: frozenset[str]) -> list[HubFile]:
    """Return the files to download: no pickles, no code, and no weights in a second form.

    weights: the names of the weights files that belong to the model
    """
    return [
        file
        for file in listing.files
        if file.name in weights
        or (
            not file.name.endswith(".safetensors")
            and "/" not in file.name
            and any(fnmatchcase(file.name, pattern) for pattern in GENERATOR_FILES)
        )
    ]


def _weights(names: list[str]) -> list[str]:
    return [name for name in names if name.endswith(".safetensors")]


def _expected_shards(names: list[str]) -> set[str]:
    """Return the names of all shards, from the count in the names of those that are there."""
    found = [shard for name in names if INDEX in names and (shard := _shard(name))]
    return {
        f"{shard[1]}-{number:05}-of-{shard[3]}.safetensors"
        for shard in found
        if shard[1] == "model"
        for number in range(1, int(shard[3]) + 1)
    }


def _lacks(listing: HubListing, missing: list[str]) -> CorruptArtifactError:
    more = f" and {len(missing) - 1} more" if missing[1:] else ""
    return CorruptArtifactError(
        f"{listing.name} lacks {missing[0]}{more}",
        "whoever made it hasn't put all of it on the hub: choose another model or revision",
    )


def _without_safetensors(listing: HubListing) -> JupiterError:
    names = listing.names
    others = [name for form in OTHER_FORMS for name in names if fnmatchcase(name, form)]
    pickles = [name for name in others if not name.endswith(".gguf")]
    if others and not pickles:
        return UsageError(
            f"{listing.name} holds weights as GGUF alone ({others[0]}), and only safetensors are "
            "read",
            _base_model_hint(listing) or "give the model that they were made from",
        )
    if others:
        return UsageError(
            f"{listing.name} holds weights as {pickles[0]}, and only safetensors are read",
            CONVERT.replace("DIR", str(listing.name.repository), 1),
        )
    return UsageError(f"{listing.name} has no weights: it is no model", "look at its page")


def _base_model_hint(listing: HubListing) -> str:
    return f"give the model that it was made from: {listing.base}" if listing.base else ""
