"""One file of the hub on its way into the library's cache: cut off it goes on, and it is checked.

Owns that file's draft, and comparing its bytes with what the hub says of them. Asking, redirects,
tokens and trying again are the library's, and so is the cache: any other program finds the file
there. The library itself begins anew whenever it was ended, so the draft is ours.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Final, Self

from jupiterd.ctl.hub.asking import asking
from jupiterd.ctl.hub.listing import HubFile, Listing
from jupiterd.errors import CorruptArtifactError

Told = Callable[[int], None]
"""Hears how many bytes of a file are here by now."""

_CHUNK_BYTES: Final = 1 << 20
_DRAFT: Final = ".incomplete"
"""As the library's own drafts were called when it went on with them; `hf cache prune` knows it."""


def draft_of(file: HubFile, folder: Path) -> Path:
    """Return where a large file is written until it is whole; folder: the model's snapshot."""
    return folder.parent.parent / "blobs" / f"{file.sha256}{_DRAFT}"


def download(listing: Listing, file: HubFile, folder: Path, told: Told) -> None:
    """Bring a file into the cache, where `folder` is the model's snapshot of this commit.

    Raises:
        CorruptArtifactError: what came isn't what the hub says of it; it is thrown away.
        JupiterError: see `asking`.
    """
    with asking(listing.name):
        if file.sha256:
            _bring_blob(listing, file, draft_of(file, folder), told)
        _link(listing, file)
        told(file.size)


def _link(listing: Listing, file: HubFile) -> None:
    """Have the library put the file where it keeps them; it fetches what isn't in its cache."""
    from huggingface_hub import hf_hub_download

    fetch: Any = hf_hub_download
    fetch(listing.name.repository, file.name, revision=listing.commit)


def _bring_blob(listing: Listing, file: HubFile, draft: Path, told: Told) -> None:
    """Write the blob of a large file, unless it is there, or another process brings it."""
    from huggingface_hub.constants import MAX_HTTP_DOWNLOAD_SIZE
    from huggingface_hub.utils import WeakFileLock

    if file.size > MAX_HTTP_DOWNLOAD_SIZE:
        return  # the hub has another protocol for such, which the library speaks
    blob = draft.with_name(file.sha256)
    lock = blob.parents[2] / ".locks" / blob.parents[1].name / f"{blob.name}.lock"
    for parent in (lock.parent, blob.parent):
        parent.mkdir(parents=True, exist_ok=True)
    with WeakFileLock(str(lock)):  # the one that the library takes for this blob
        if blob.exists():
            return
        _go_on_with(listing, file, draft, told)
        _check(listing, file, draft)
        draft.rename(blob)


def _go_on_with(listing: Listing, file: HubFile, draft: Path, told: Told) -> None:
    from huggingface_hub import get_hf_file_metadata, hf_hub_url
    from huggingface_hub.file_download import http_get
    from huggingface_hub.utils import build_hf_headers

    url = hf_hub_url(listing.name.repository, file.name, revision=listing.commit)
    found: Any = get_hf_file_metadata(url, retry_on_errors=True)
    headers = build_hf_headers() if _is_at_hub(found.location, url) else {}
    if draft.exists() and draft.stat().st_size > file.size:
        draft.unlink()
    with draft.open("ab") as opened:
        told(opened.tell())
        http_get(
            found.location,
            opened,
            resume_size=opened.tell(),
            headers=headers,
            expected_size=file.size,
            tqdm_class=_bar(opened, told),
        )


def _is_at_hub(location: str, url: str) -> bool:
    """Say whether a file lies at the hub itself: nobody else is shown the token."""
    from urllib.parse import urlsplit

    return urlsplit(location).netloc == urlsplit(url).netloc


def _bar(opened: BinaryIO, told: Told) -> Any:  # noqa: ANN401 - stands for a class of tqdm
    """Return what the library calls in place of its progress bar."""

    class Bar:
        def __init__(self, **_: object) -> None:
            pass

        def update(self, _: float = 1) -> None:
            told(opened.tell())

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            pass

    return Bar


def _check(listing: Listing, file: HubFile, draft: Path) -> None:
    digest = hashlib.sha256()
    with draft.open("rb") as opened:
        while chunk := opened.read(_CHUNK_BYTES):
            digest.update(chunk)
    if digest.hexdigest() == file.sha256:
        return
    draft.unlink()
    raise CorruptArtifactError(
        f"{file.name} of {listing.name} isn't what the hub says of it: its sha256 is "
        f"{digest.hexdigest()[:12]}, not {file.sha256[:12]}",
        "what came was thrown away; run the command again, and look at proxies on the way "
        "(HTTPS_PROXY) if it comes so again",
    )
