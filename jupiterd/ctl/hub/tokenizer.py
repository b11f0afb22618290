"""The tokenizer of a model of the hub, without its weights.

Owns the choice of files to download. Doesn't tokenize text.
"""

from pathlib import Path

from jupiterd.ctl.hub.asking import check_library
from jupiterd.ctl.hub.download import download
from jupiterd.ctl.hub.listing import HubListing, listing_of
from jupiterd.ctl.hub.names import HubName
from jupiterd.ctl.hub.snapshot import cached_snapshot, snapshot_of
from jupiterd.cycle.base.model_files import FAST_TOKENIZER, WITH_TOKENIZER, has_tokenizer
from jupiterd.errors import NotFoundError, SourceUnreachableError


def tokenizer_folder(name: HubName) -> Path:
    """Return a folder on this machine with a model's tokenizer, downloaded if needed.

    Raises:
        NotFoundError: the model has no tokenizer, or there is no such model.
        JupiterError: the library isn't installed, we have no access, or the hub can't be reached.
    """
    check_library()
    try:
        listing = listing_of(name)
    except SourceUnreachableError as error:
        return cached_snapshot(name, FAST_TOKENIZER, error)
    if not has_tokenizer(listing.names):
        raise NotFoundError(
            f"{name} holds no {FAST_TOKENIZER}, nor a tokenizer in an older form",
            "give the id of a model with its tokenizer",
        )
    return _fetched(listing)


def _fetched(listing: HubListing) -> Path:
    files = [file for file in listing.files if file.name in WITH_TOKENIZER]
    folder = snapshot_of(listing, min(files, key=lambda file: file.size).name)
    for file in files:
        download(listing, file, folder, lambda _: None)
    return folder
