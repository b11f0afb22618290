"""Models that can be talked to, and what one writes in a cycle that begins with it.

Owns how such a model is told by its files, and when it writes though nobody named a generator: it
knows how to answer, so it asks and answers questions about the documents from round 1 on. Doesn't
know disks: it is given names and text.
"""

import json
from collections.abc import Collection
from typing import Any, Final

from jupiterd.cycle.data.tokenizer_identity import OLD_TEMPLATE_FILE, TEMPLATE, TEMPLATE_FILE
from jupiterd.cycle.domain.domain import Domain, RewritingTemplate
from jupiterd.cycle.templates.turns import PAIRED

TEMPLATE_FILES: Final = frozenset({TEMPLATE_FILE, OLD_TEMPLATE_FILE})
CONFIG_FILE: Final = "tokenizer_config.json"
"""Where the template lies, too, in many folders."""

QUESTIONS: Final = "question_answer"
SAMPLES: Final = 100
"""Of them in a round, where the domain names no templates."""


def is_talked_to(names: Collection[str], tokenizer_config: str) -> bool:
    """Say whether a model folder has a chat template.

    Args:
        names: of its files.
        tokenizer_config: what CONFIG_FILE says; empty where there is none.
    """
    if not TEMPLATE_FILES.isdisjoint(names):
        return True
    try:
        said: Any = json.loads(tokenizer_config)
    except (ValueError, RecursionError):
        return False
    return isinstance(said, dict) and bool(said.get(TEMPLATE))  # pyright: ignore[reportUnknownMemberType]


def is_to_write(domain: Domain) -> bool:
    """Say whether a chat model that the cycle begins with writes: people said nothing else."""
    if domain.mix_ratio.synthetic_share == 0:
        return False
    names_templates = "templates" in domain.generation.model_fields_set
    return not names_templates or not PAIRED.isdisjoint(domain.generation.kinds)


def asking(domain: Domain) -> Domain:
    """Return the domain with questions and answers where it names no templates."""
    if "templates" in domain.generation.model_fields_set:
        return domain
    template = RewritingTemplate.model_validate({"kind": QUESTIONS, "samples": SAMPLES})
    generation = domain.generation.model_copy(update={"templates": (template,)})
    return domain.model_copy(update={"generation": generation})
