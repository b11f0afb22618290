"""The model that will write a cycle's synthetic text, and how much, before the cycle starts.

Owns the texts. `cycle.generation` decides what a generator or a first chat model implies, as when
the cycle starts. Doesn't look for models.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jupiterd.cycle.domain.domain import Domain
from jupiterd.cycle.generation.chat_models import asking, is_to_write
from jupiterd.cycle.generation.usual_templates import domain_with
from jupiterd.cycle.rounds.plan_times import Writing
from jupiterd.formats import counted, plain


@dataclass(frozen=True)
class PlannedWriter:
    """The model that writes, and the domain with its limits."""

    name: str
    """The model's name; empty: the student, once one was promoted."""
    domain: Domain
    """The domain, with the templates and limits of prompts."""

    @property
    def samples(self) -> int:
        """Return how many samples a round requests."""
        return sum(template.samples for template in self.domain.generation.templates)

    @property
    def tokens(self) -> int:
        """Return the highest number of tokens of all samples of a round together."""
        generation = self.domain.generation
        return sum(each.samples * generation.max_tokens_of(each) for each in generation.templates)

    def arguments(self) -> dict[str, Any]:
        """Return the command's fields by which the leader finds this writer's earlier speed."""
        return {"writer": self.name} if self.name else {}

    @property
    def in_round_1(self) -> Writing | None:
        """Return the samples and tokens of round 1; None: nothing is written."""
        return Writing(self.samples, self.tokens) if self.name and self.samples else None

    def line(self) -> str:
        """Return a sentence about the writer and its limits."""
        if not self.samples:
            return "nothing is generated: there is no generator, and the domain has no templates"
        who = plain(self.name or "the student, once one was promoted,")
        most = f"{counted(self.samples, 'sample')} a round, {self.tokens:,} tokens together"
        return f"{who} writes at most {most}"


def planned_writer(domain: Domain, named: str, init: Mapping[str, Any]) -> PlannedWriter:
    """Return the model that will write, and the domain that it makes.

    Args:
        domain: the domain of the file.
        named: the generator that the command names; empty: none.
        init: the command's field about the first model; empty: none.
    """
    if who := named or domain.generation.generator:
        return PlannedWriter(who, domain_with(domain, {"name": who}))
    if init.get("is_chat") and is_to_write(domain):
        return PlannedWriter(str(init["model"]), asking(domain))
    return PlannedWriter("", domain)
