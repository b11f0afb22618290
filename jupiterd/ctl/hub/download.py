"""The download of one file of the hub into the library's cache, resumed and checked by its hash.

Owns the partial file, and the comparison of its hash with the hub's. The library makes requests,
follows redirects, sends tokens and retries; the cache is the library's too, so other programs find
the file there. The library restarts an interrupted download from its beginning, so this module
writes the partial file itself.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Final, Self

from jupiterd.ctl.hub.asking import asking
from jupiterd.ctl.hub.listing import HubFile, HubListing
from jupiterd.errors import CorruptArtifactError

OnProgress = Callable[[int], None]
"""Gets the number of bytes of the file that were downloaded so far."""

_CHUNK_BYTES: Final = 1 << 20
_DRAFT: Final = ".incomplete"
"""The suffix of partial files in older versions of the library; `hf cache prune` deletes them."""


def draft_of(file: HubFile, folder: Path) -> Path:
    """Return the path of a large file's partial download; folder: the model's snapshot."""
    return folder.parent.parent / "blobs" / f"{file.sha256}{_DRAFT}"


def download(listing: HubListing, file: HubFile, folder: Path, on_progress: OnProgress) -> None:
    """Download a file into the cache, where `folder` is the model's snapshot of this commit.

    Raises:
        CorruptArtifactError: a large file's hash isn't the hub's; the file is deleted.
        JupiterError: see `asking`.
    """
    with asking(listing.name):
        if file.sha256:
            _bring_blob(listing, file, draft_of(file, folder), on_progress)
        _link(listing, file)
        on_progress(file.size)


def _link(listing: HubListing, file: HubFile) -> None:
    """Have the library link the file into the snapshot; it downloads files that the cache lacks."""
    from huggingface_hub import hf_hub_download

    fetch: Any = hf_hub_download
    fetch(listing.name.repository, file.name, revision=listing.commit)


def _bring_blob(listing: HubListing, file: HubFile, draft: Path, on_progress: OnProgress) -> None:
    """Download the blob of a large file unless it is there or another process downloads it."""
    from huggingface_hub.constants import MAX_HTTP_DOWNLOAD_SIZE
    from huggingface_hub.utils import WeakFileLock

    if file.size > MAX_HTTP_DOWNLOAD_SIZE:
        return  # such files need the hub's other protocol: the library downloads them
    blob = draft.with_name(file.sha256)
    lock = blob.parents[2] / ".locks" / blob.parents[1].name / f"{blob.name}.lock"
    for parent in (lock.parent, blob.parent):
        parent.mkdir(parents=True, exist_ok=True)
    with WeakFileLock(str(lock)):  # the lock that the library takes for this blob
        if blob.exists():
            return
        _go_on_with(listing, file, draft, on_progress)
        _check(listing, file, draft)
        draft.rename(blob)


def _go_on_with(listing: HubListing, file: HubFile, draft: Path, on_progress: OnProgress) -> None:
    from huggingface_hub import get_hf_file_metadata, hf_hub_url
    from huggingface_hub.file_download import http_get
    from huggingface_hub.utils import build_hf_headers

    url = hf_hub_url(listing.name.repository, file.name, revision=listing.commit)
    found: Any = get_hf_file_metadata(url, retry_on_errors=True)
    headers = build_hf_headers() if _is_at_hub(found.location, url) else {}
    if draft.exists() and draft.stat().st_size > file.size:
        draft.unlink()
    with draft.open("ab") as opened:
        on_progress(opened.tell())
        http_get(
            found.location,
            opened,
            resume_size=opened.tell(),
            headers=headers,
            expected_size=file.size,
            tqdm_class=_bar(opened, on_progress),
        )


def _is_at_hub(location: str, url: str) -> bool:
    """Return whether a file's location is on the hub's host: no other host gets the token."""
    from urllib.parse import urlsplit

    return urlsplit(location).netloc == urlsplit(url).netloc


def _bar(opened: BinaryIO, on_progress: OnProgress) -> Any:  # noqa: ANN401 - stands for a class of tqdm
    """Return a class with the methods of tqdm that the library calls; it reports the bytes."""

    class Bar:
        def __init__(self, **_: object) -> None:
            pass

        def update(self, _: float = 1) -> None:
            on_progress(opened.tell())

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            pass

    return Bar


def _check(listing: HubListing, file: HubFile, draft: Path) -> None:
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
