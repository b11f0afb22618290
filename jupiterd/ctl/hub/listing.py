"""The hub's description of a model before anything is downloaded: its commit and its files.

Owns the request. Doesn't know which of the files are needed, or whether they can be trained.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from jupiterd.ctl.hub.asking import asking
from jupiterd.ctl.hub.names import HubName
from jupiterd.ctl.hub.patience import patiently
from jupiterd.ctl.output.console import notice

TIMEOUT_S = 30.0


@dataclass(frozen=True)
class HubFile:
    """One file, as the hub describes it."""

    name: str
    size: int
    """In bytes; 0: the hub doesn't say."""
    sha256: str = ""
    """The hash of a large file; empty: the file is small."""


@dataclass(frozen=True)
class HubListing:
    """A model at one commit."""

    name: HubName
    commit: str
    files: tuple[HubFile, ...]
    kinds: Mapping[str, int] = field(default_factory=dict[str, int])
    """dtype in its safetensors, such as BF16 -> number of values; empty: the hub doesn't say."""
    base: str = ""
    """The model that it was made from, according to its card; empty: the card names none."""

    @property
    def names(self) -> list[str]:
        """Return the names of the files at its top level; files in subfolders are never read."""
        return [file.name for file in self.files if "/" not in file.name]


def listing_of(name: HubName) -> HubListing:
    """Request a model's commit and files; after HTTP 429, retry up to three times.

    Raises:
        JupiterError: there is no such model, we have no access, or the hub can't be reached.
    """
    from huggingface_hub import HfApi

    def ask() -> Any:  # noqa: ANN401 - the library's own
        return HfApi().model_info(
            name.repository,
            revision=name.revision or None,
            files_metadata=True,
            timeout=TIMEOUT_S,
        )

    with asking(name):
        answer = patiently(ask, notice)
    files = tuple(_file(each) for each in answer.siblings or ())
    weights = getattr(answer, "safetensors", None)
    kinds = {} if weights is None else dict(weights.parameters)
    return HubListing(name, str(answer.sha), files, kinds, _base_of(answer))


def _file(sibling: Any) -> HubFile:  # noqa: ANN401 - the library's own type
    digest = "" if sibling.lfs is None else str(sibling.lfs.sha256)
    return HubFile(str(sibling.rfilename), int(sibling.size or 0), digest)


def _base_of(answer: Any) -> str:  # noqa: ANN401 - the library's own type
    base = getattr(getattr(answer, "card_data", None), "base_model", None)
    return str(base[0] if isinstance(base, list) and base else base or "")
