"""Names of models and data sets of the hub: an id, or the address of a model's page.

Pure. Doesn't know whether the hub has it.
"""

import re
from dataclasses import dataclass

_ID = r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*"

is_hub_name = re.compile(_ID).fullmatch
"""Matches a text that can be the id of a model or data set, such as Qwen/Qwen3-0.6B."""

_named = re.compile(rf"({_ID})(?:@([\w.][\w./-]*))?").fullmatch

_at_page = re.compile(
    rf"https?://(?:www\.)?(?:huggingface\.co|hf\.co)/({_ID})(?:/tree/([\w.][\w./-]*?))?/?"
).fullmatch


@dataclass(frozen=True)
class HubName:
    """A model or data set of the hub, as people named it."""

    repository: str
    """Its id, such as Qwen/Qwen3-0.6B."""
    revision: str = ""
    """A branch, a tag or a commit; empty: the main branch."""
    is_data_set: bool = False

    @property
    def model(self) -> str:
        """Return the model's name in the cluster: its id without the owner."""
        return self.repository.rpartition("/")[2]

    @property
    def noun(self) -> str:
        """Return `data set` or `model`."""
        return "data set" if self.is_data_set else "model"

    @property
    def page(self) -> str:
        """Return the address of its page."""
        return f"huggingface.co/{'datasets/' if self.is_data_set else ''}{self.repository}"

    def __str__(self) -> str:
        """Return the id, and the revision if there is one, as people type it."""
        return f"{self.repository}@{self.revision}" if self.revision else self.repository


def hub_name(text: str) -> HubName | None:
    """Return the hub model that a text names; None: it can't be one.

    text: ORG/NAME, ORG/NAME@REVISION, or https://huggingface.co/ORG/NAME
    """
    found = _named(text) or _at_page(text)
    return None if found is None else HubName(found[1], found[2] or "")
