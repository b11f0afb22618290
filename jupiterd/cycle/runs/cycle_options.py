"""What people say of a cycle's training where they start it, in the words of a training run.

Owns the names, their bounds, and what becomes of the size's recipe and the domain's overrides. What
is said counts more than either, in every round. Doesn't know who trains, or flags.
"""

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import Field

from jupiterd.cycle.domain.domain import Domain, domain_text
from jupiterd.cycle.runs.run_settings import CheckedOptions
from jupiterd.cycle.training.adapters.adapter import parse_adapter, with_quantize
from jupiterd.cycle.training.plan import parse_model
from jupiterd.errors import UsageError

OF_DOMAIN = ("seq_len", "learning_rate")
"""Options that a domain's `training` has, by these names."""
OFF = "off"
"""Of the adapter: none, whatever the domain says."""
OF_ENGINE = ("precision", "gradient_checkpointing", "attention", "optimizer")
"""Options of a recipe's engine, by these names."""


class CycleOptions(CheckedOptions):
    """What is said; None leaves it to the size, or the domain."""

    seq_len: Annotated[int, Field(ge=16, le=131_072)] | None = None
    """Tokens of one training sequence."""
    batch_size: Annotated[int, Field(ge=1, le=65_536)] | None = None
    """Sequences that a device holds at a time; a step takes at least as many."""
    learning_rate: Annotated[float, Field(gt=0.0, le=1.0)] | None = None
    """Peak, of every round."""
    max_steps: Annotated[int, Field(ge=1, le=100_000_000)] | None = None
    """The most steps of a round; fewer are taken where its text isn't worth as many."""
    precision: Literal["auto", "fp32", "bf16", "fp16"] | None = None
    gradient_checkpointing: Literal["auto", "on", "off"] | None = None
    attention: Literal["auto", "sdpa", "flash"] | None = None
    optimizer: Literal["adamw", "muon"] | None = None
    fixed_micro_batch: Annotated[int, Field(ge=1, le=65_536)] | None = None
    """Sequences that every device holds at a time, whatever would fill it."""
    loss_on: Literal["all", "answers"] | None = None
    """What the loss counts of generated questions and answers; None: answers."""
    lora: Annotated[str, Field(max_length=256)] | None = None
    """The adapter that is trained beside the weights to begin with, or off; None: as the domain
    says. Older builds know none."""
    quantize: Literal["none", "4bit", "8bit"] | None = None
    """What its base is kept in; None: as the adapter's text says."""

    shard: Literal["auto", "off", "1", "2", "3"] | None = None
    """What of the model is cut over ranks; None: as the domain says. Older builds know none."""
    memory: Annotated[str, Field(max_length=16_384)] | None = None
    """What rounds may use of members' memory, such as `mini=8 studio=16`, in GB; None: all of it.
    Older builds know none."""

    def in_domain(self, text: str, domain: Domain) -> tuple[str, Domain]:
        """Return a domain, and its text, as if its `training` said so.

        Raises:
            UsageError: no adapter can be as it is said.
        """
        said = self._said(OF_DOMAIN) | self._adapter(domain.training.lora)
        if not said:
            return text, domain
        training = domain.training.model_copy(update=said)
        changed = domain.model_copy(update={"training": training})
        return domain_text(changed), changed

    def in_model(self, text: str) -> str:
        """Return a model's text with what is said of how it is computed."""
        if not (said := self._said((*OF_ENGINE, "batch_size", "fixed_micro_batch"))):
            return text
        shape, size = parse_model(text), said.pop("batch_size", 0)
        fixed = said.pop("fixed_micro_batch", 0)
        said |= {"micro_batch": "fixed"} if fixed else {}
        recipe = shape.recipe
        changed: dict[str, Any] = {"options": recipe.options.model_copy(update=said)}
        if size:
            least = max(recipe.batch_sequences, size)
            changed |= {"micro_batch_sequences": size, "batch_sequences": least}
        if fixed:
            changed["micro_batch_sequences"] = fixed
        return shape.model_copy(update={"recipe": recipe.model_copy(update=changed)}).to_text()

    def _adapter(self, of_domain: str | None) -> dict[str, str | None]:
        """Return the adapter that is trained, if anything is said of it; raises UsageError."""
        lora = of_domain if self.lora is None else self.lora
        has_none = lora in (None, OFF)
        if self.quantize is not None and not has_none:
            lora = with_quantize(lora or "", self.quantize, replaces=self.lora is None)
        elif self.quantize not in (None, "none"):
            raise UsageError(
                "only a model that stays as it is can be quantized, and all weights are trained",
                f"add --lora, which trains an adapter beside it: --lora --quantize {self.quantize}",
            )
        if self.lora is None and (self.quantize is None or has_none):
            return {}
        if not has_none:
            parse_adapter(lora or "")
        return {"lora": None if has_none else lora}

    def _said(self, names: Iterable[str]) -> dict[str, Any]:
        values = {name: getattr(self, name) for name in names}
        return {name: value for name, value in values.items() if value is not None}
