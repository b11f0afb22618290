"""The library's cache of the hub: one folder for each commit of a model, with its downloaded files.

Owns finding that folder, with or without a request to the hub. Doesn't know which files are read.
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
    """Return the folder of a commit, after downloading a small file into it.

    Raises:
        JupiterError: see `asking`.
    """
    name = listing.name
    folder = fetched(name, file).parent  # by its branch: the cache then records the branch's commit
    if folder.name == listing.commit:
        return folder
    return fetched(HubName(name.repository, listing.commit), file).parent  # the branch has moved


def fetched(name: HubName, file: str) -> Path:
    """Return the path of a small file, downloaded if the cache lacks it; raise as `asking` does."""
    from huggingface_hub import hf_hub_download

    fetch: Any = hf_hub_download
    with asking(name):
        revision = name.revision or None
        return Path(patiently(lambda: fetch(name.repository, file, revision=revision), notice))


def cached_snapshot(name: HubName, file: str, why: JupiterError) -> Path:
    """Return the folder of a model that was downloaded before, without a request to the hub.

    Args:
        name: the model.
        file: a file that must be in it.
        why: the reason that the hub can't be reached.

    Raises:
        JupiterError: `why`; the cache lacks the file.
    """
    from huggingface_hub import hf_hub_download

    fetch: Any = hf_hub_download
    try:
        found = fetch(name.repository, file, revision=name.revision or None, local_files_only=True)
    except Exception as error:  # an invalid name, a damaged cache, or no such file
        raise why from error
    return Path(found).parent
