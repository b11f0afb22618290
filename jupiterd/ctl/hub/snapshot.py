"""The library's cache of the hub: a folder for each commit of a model, with what was fetched of it.

Owns finding that folder, with the hub's help or without. Doesn't know what is read of it.
"""

from pathlib import Path
from typing import Any

from jupiterd.ctl.hub.asking import asking
from jupiterd.ctl.hub.listing import HubListing
from jupiterd.ctl.hub.names import HubName
from jupiterd.ctl.hub.patience import patiently
from jupiterd.ctl.output.console import notice
from jupiterd.errors import JupiterError


def snapshot_of(listing: HubListing, file: str) -> Path:
    """Return the folder of a commit, once a small file of it is there.

    Raises:
        JupiterError: see `asking`.
    """
    name = listing.name
    folder = fetched(name, file).parent  # by its branch: the cache notes where that is
    if folder.name == listing.commit:
        return folder
    return fetched(HubName(name.repository, listing.commit), file).parent  # it has moved on since


def fetched(name: HubName, file: str) -> Path:
    """Return a small file of a model, fetched where it isn't in the cache; raises as `asking`."""
    from huggingface_hub import hf_hub_download

    fetch: Any = hf_hub_download
    with asking(name):
        revision = name.revision or None
        return Path(patiently(lambda: fetch(name.repository, file, revision=revision), notice))


def cached_snapshot(name: HubName, file: str, why: JupiterError) -> Path:
    """Return the folder of a model that was fetched before, without asking the hub.

    Args:
        name: the model.
        file: that must be in it.
        why: the hub can't be asked.

    Raises:
        JupiterError: `why`; it isn't there either.
    """
    from huggingface_hub import hf_hub_download

    fetch: Any = hf_hub_download
    try:
        found = fetch(name.repository, file, revision=name.revision or None, local_files_only=True)
    except Exception as error:  # a name that can't be, a cache that is damaged, nothing there
        raise why from error
    return Path(found).parent
