"""Links in a model's folder: what a stranger has packed may lead to any file of its reader.

Owns which links are followed: those that stay in the folder, or in a cache of the hub, which lays
its snapshots out as links to blobs. Doesn't know what the files are for.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from jupiterd.errors import UsageError

_CACHE_VARIABLES: Final = ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE")
_SNAPSHOTS, _BLOBS = "snapshots", "blobs"
_KINDS: Final = ("models--", "datasets--")


def check_links(folder: Path) -> None:
    """Raise UsageError where a link in a model's folder leads out of it, or to itself."""
    real = Path(os.path.realpath(folder))
    allowed = (real, *_caches(real))
    for path in sorted(folder.iterdir()):
        target = Path(os.path.realpath(path)) if path.is_symlink() else path
        if target is not path and target.is_symlink():
            raise UsageError(
                f"{path.name} of {folder} is a link that leads to itself",
                "fetch the model again, or put the file in the place of the link",
            )
        if target is not path and not any(map(target.is_relative_to, allowed)):
            raise UsageError(
                f"{path.name} of {folder} is a link that leads out of it, to {target}",
                "it isn't read, since whoever made the folder may have meant any file of yours; "
                "if the file belongs to the model, put a copy in the place of the link",
            )


def _caches(folder: Path) -> Iterator[Path]:
    """Yield where a hub's snapshots may lead: their own blobs, and this user's own cache."""
    repository = folder.parent.parent
    if folder.parent.name == _SNAPSHOTS and repository.name.startswith(_KINDS):
        yield repository / _BLOBS
    named = [os.environ[name] for name in _CACHE_VARIABLES if os.environ.get(name)]
    home = os.environ.get("HF_HOME") or Path("~/.cache/huggingface")
    yield from (
        Path(os.path.realpath(Path(each).expanduser())) for each in named or [Path(home, "hub")]
    )
