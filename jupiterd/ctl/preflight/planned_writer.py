"""Which model will write a cycle's synthetic text, and how much, before the cycle starts.

Owns the texts. What follows from a generator, or from a chat model to begin with, is decided by
`cycle.generation`, as where the cycle starts. Doesn't look for any model.
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
    """Who writes."""

    name: str
    """As people call the model; empty: the student, once one was promoted."""
    domain: Domain
    """With the prompts' templates and limits."""

    @property
    def samples(self) -> int:
        """Return how many texts a round requests."""
        return sum(template.samples for template in self.domain.generation.templates)

    @property
    def tokens(self) -> int:
        """Return the most tokens of all of them together."""
        generation = self.domain.generation
        return sum(each.samples * generation.max_tokens_of(each) for each in generation.templates)

    def arguments(self) -> dict[str, Any]:
        """Return the command's fields by which the leader finds this writer's earlier speed."""
        return {"writer": self.name} if self.name else {}

    @property
    def in_round_1(self) -> Writing | None:
        """Return what is written in round 1; None: nothing."""
        return Writing(self.samples, self.tokens) if self.name and self.samples else None

    def line(self) -> str:
        """Return it in a sentence."""
        if not self.samples:
            return "nothing is generated: there is no generator, and the domain has no templates"
        who = plain(self.name or "the student, once one was promoted,")
        most = f"{counted(self.samples, 'sample')} a round, {self.tokens:,} tokens together"
        return f"{who} writes at most {most}"


def planned_writer(domain: Domain, named: str, init: Mapping[str, Any]) -> PlannedWriter:
    """Return who writes.

    Args:
        domain: as its file says.
        named: the generator that the command names; empty: none.
        init: the model that the cycle begins with, as in the command; empty: none.
    """
    if who := named or domain.generation.generator:
        return PlannedWriter(who, domain_with(domain, {"name": who}))
    if init.get("is_chat") and is_to_write(domain):
        return PlannedWriter(str(init["model"]), asking(domain))
    return PlannedWriter("", domain)
