"""One dial, the size, decides a model's shape and how each round of it is trained.

Owns the form of a size preset (config/models/*.yaml), the count of parameters, and what a round's
training is derived from. Doesn't know files, engines or nodes: it is given text.
"""

import json
from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from jupiterd.cycle.base.plain_text import Plain, hash_of
from jupiterd.cycle.base.yaml_text import YamlMistakesError, parse_yaml
from jupiterd.cycle.training.architectures import MAX_VOCAB, QWEN3, shape_fields
from jupiterd.cycle.training.engine_options import EngineOptions, Switch
from jupiterd.cycle.training.schedule import Schedule
from jupiterd.errors import InvalidSettingError

Overrides = Mapping[str, float | int]
"""What a domain's `training` part says otherwise, by its names there."""


SHAPE_OVERRIDES = frozenset({"vocab_size", "seq_len"})
PLAN_OVERRIDES = frozenset({"steps", "batch_sequences", "learning_rate"})

STEPS_BEFORE_CLOCK = 10
"""No more are sure to end before a checkpoint is due by the clock (`training.save_clock`)."""

MOST_WARMUP_STEPS = 1_000


_EXTENDING = ("least_steps", "extends_by_steps")


class Recipe(Plain):
    """How a model of this size is trained, unless a domain says otherwise."""

    first_steps: Annotated[int, Field(ge=1)]
    """Optimizer steps of round 1, from random weights."""
    later_steps: Annotated[int, Field(ge=1)]
    """Optimizer steps of each later round: the trunk goes on, and then the branch."""
    batch_sequences: Annotated[int, Field(ge=1)]
    """Sequences of one optimizer step, over all ranks."""
    micro_batch_sequences: Annotated[int, Field(ge=1)]
    """Sequences that one rank holds in memory at a time; a larger share is accumulated."""
    learning_rate: Annotated[float, Field(ge=0.0, le=1.0)]
    """Of the trunk: every round holds it until its branch begins."""
    later_learning_rate: Annotated[float, Field(ge=0.0, le=1.0)]
    """Peak of a later round that can't go on with the trunk, and warms up afresh."""
    warmup_fraction: Annotated[float, Field(ge=0.0, le=0.5)] = 0.03
    """Share of a round's steps in which the rate rises, 1,000 steps at most; not on the trunk."""
    decay_fraction: Annotated[float, Field(ge=0.0, le=1.0)] = 0.2
    """Share of a round's steps that are its branch: there the rate falls to nothing."""
    weight_decay: Annotated[float, Field(ge=0.0, le=1.0)] = 0.1
    """Of matrices; embeddings and norms have none."""
    clip_norm: Annotated[float, Field(gt=0.0)] = 1.0
    """Longest gradient (L2, over all parameters)."""
    checkpoint_every_steps: Annotated[int, Field(ge=1)]
    """A dead machine costs at most this many steps; islands write less often where they are quick.
    """
    options: EngineOptions = EngineOptions()
    """How it is computed."""


class ModelShape(Plain):
    """A causal language model and the recipe that goes with its size."""

    version: Literal[1]
    """Version of this form."""
    size: Annotated[str, Field(min_length=1, max_length=32)]
    """What the preset is called, such as 1m."""
    vocab_size: Annotated[int, Field(ge=257, le=MAX_VOCAB)]
    """Rows of the embedding; the tokenizer has at most this many entries."""
    seq_len: Annotated[int, Field(ge=16, le=131_072)]
    """Tokens of one training sequence."""
    hidden: Annotated[int, Field(ge=8)]
    layers: Annotated[int, Field(ge=1)]
    ff: Annotated[int, Field(ge=8)]
    """Width of the gated feed-forward part."""
    heads: Annotated[int, Field(ge=1)]
    kv_heads: Annotated[int, Field(ge=1)]
    head_dim: Annotated[int, Field(ge=2)] = 64
    rope_theta: Annotated[float, Field(gt=1.0)] = 100_000.0
    """Base of the rotary position embedding."""
    tied: bool = True
    """The output layer shares the embedding's weights."""
    architecture: Annotated[str, Field(pattern=r"^[a-z0-9_]{1,32}$")] = QWEN3
    """Hugging Face's model_type."""
    config: dict[str, Any] = Field(default_factory=dict)
    """The rest of Hugging Face's config.json, where the model was given as one."""
    recipe: Recipe

    @model_validator(mode="after")
    def _heads_fit(self) -> Self:
        if self.heads % self.kv_heads:
            raise ValueError("heads: expected a multiple of kv_heads")
        if self.head_dim % 2:
            raise ValueError("head_dim: expected an even number")
        return self

    def with_recipe(self, plan: "TrainPlan", gradient_checkpointing: Switch) -> "ModelShape":
        """Return it with what a plan says of memory: the micro batch and how it is computed.

        An adapter is no part of the model: settings say it.
        """
        options = {"gradient_checkpointing": gradient_checkpointing, "adapter": None}
        changed = {
            "micro_batch_sequences": plan.micro_batch_sequences,
            "options": plan.options.model_copy(update=options),
        }
        return self.model_copy(update={"recipe": self.recipe.model_copy(update=changed)})

    def to_text(self) -> str:
        """Return it in the form of a preset."""
        return json.dumps(self.to_plain(), sort_keys=True)

    def architecture_hash(self) -> str:
        """Return BLAKE3 of what decides the tensors and what they compute, 64 hex digits."""
        return hash_of(
            self.model_dump(mode="json", exclude={"version", "size", "seq_len", "recipe"})
        )


class TrainPlan(Plain):
    """One round's training, the same for every attempt and every number of ranks."""

    steps: int
    batch_sequences: int
    micro_batch_sequences: int
    learning_rate: float
    warmup_steps: int
    decay_steps: int
    weight_decay: float
    clip_norm: float
    checkpoint_every_steps: int
    seed: int
    """Key of the order of the data, and of the first weights."""
    options: EngineOptions = EngineOptions()
    keeps_trunk: bool = False
    """A later round goes on from where the rate begins to fall: a checkpoint is written there."""
    least_steps: int = 0
    """Where `extends_by_steps` isn't 0: taken whatever the loss on held-out text does."""
    extends_by_steps: int = 0
    """The trunk grows by so many steps, up to `steps` in all, while that loss falls (see
    `training.horizon`); 0: `steps` are taken, neither more nor fewer."""

    @property
    def trunk_steps(self) -> int:
        """Return the steps before the rate begins to fall, at the most."""
        return self.steps - self.decay_steps

    @property
    def least_trunk_steps(self) -> int:
        """Return the steps before the rate begins to fall, at the least."""
        if not self.extends_by_steps:
            return self.trunk_steps
        return max(1, self.least_steps - round(self.least_steps * self.decay_steps / self.steps))

    def decay_after(self, trunk_steps: int) -> int:
        """Return how many steps the rate takes to fall that has begun to after so many."""
        if not self.extends_by_steps or trunk_steps >= self.trunk_steps:
            return self.decay_steps
        return round(trunk_steps * self.decay_steps / self.trunk_steps)

    def decides_after(self, step: int) -> bool:
        """Say whether the trunk ends after so many steps, or it is decided whether it does."""
        beyond = step - self.least_trunk_steps
        is_place = bool(self.extends_by_steps) and beyond % self.extends_by_steps == 0
        is_there = beyond >= 0 and step <= self.trunk_steps
        return is_there and (is_place or step == self.trunk_steps)

    def is_compared_after(self, step: int) -> bool:
        """Say whether the loss after so many steps is what the first place is compared with."""
        return bool(step) and step == self.least_trunk_steps - self.extends_by_steps

    def is_on_trunk(self, step: int) -> bool:
        """Say whether a later round may go on from what there is after so many steps."""
        return self.keeps_trunk and self.warmup_steps <= step <= self.trunk_steps

    @property
    def saves_during_training(self) -> bool:
        """Say whether a checkpoint may be written while training goes on after it.

        Where its steps don't say so, the clock may (`training.save_clock`): so it may of all plans
        but those of very few steps.
        """
        is_short = 0 < self.steps <= min(self.checkpoint_every_steps, STEPS_BEFORE_CLOCK)
        ends_trunk = bool(self.keeps_trunk or self.extends_by_steps)
        return not is_short or (ends_trunk and 0 < self.trunk_steps < self.steps)

    def saves_after(self, step: int) -> bool:
        """Say whether a checkpoint is due after so many steps."""
        ends_trunk = (self.keeps_trunk or self.extends_by_steps) and self.decides_after(step)
        return bool(ends_trunk) or step % self.checkpoint_every_steps == 0 or step >= self.steps

    def to_plain(self) -> dict[str, Any]:
        """Return it without what it doesn't make use of: ranks of older builds read it, too."""
        plain = super().to_plain()
        return plain if self.extends_by_steps else _without(plain, _EXTENDING)

    def schedule(self) -> Schedule:
        """Return the learning rate's curve."""
        return Schedule(self.learning_rate, self.steps, self.warmup_steps, self.decay_steps)

    def hash(self) -> str:
        """Return BLAKE3 of the plan, 64 hex digits: equal plans train alike."""
        return hash_of(self.what_counts())

    def what_counts(self) -> dict[str, Any]:
        """Return what must be the same on all ranks, and from a round's first step to its last.

        What only decides how much memory and time a step takes isn't in it: a gang whose machine
        ran out of memory goes on with smaller micro batches.
        """
        how = {"gradient_checkpointing", "attention", "compile", "micro_batch"}
        if self.options.document_masks == "off":  # as plans were before there was a choice
            how.add("document_masks")
        left_out: dict[str, Any] = {
            "micro_batch_sequences": True,
            "options": how,
            "keeps_trunk": True,
        }
        if not self.extends_by_steps:  # as plans were before any could grow
            left_out |= dict.fromkeys(_EXTENDING, True)
        return self.model_dump(mode="json", exclude=left_out)


def parse_model(
    text: str, overrides: Overrides | None = None, file_name: str = "model.yaml"
) -> ModelShape:
    """Return the shape that a size preset describes, with the overrides that concern the shape.

    Raises:
        InvalidSettingError: with file, line and what was expected there, for the first mistake.
    """
    try:
        shape = parse_yaml(text, file_name, ModelShape)
    except YamlMistakesError as error:
        raise InvalidSettingError(error.mistakes[0], "config/models holds every size") from error
    changed = {k: v for k, v in (overrides or {}).items() if k in SHAPE_OVERRIDES}
    return ModelShape.from_plain(shape.to_plain() | changed)


def derive(
    shape: ModelShape,
    round_number: int,
    overrides: Overrides | None = None,
    seed: int = 0,
    *,
    goes_on: bool = False,
) -> TrainPlan:
    """Return how a round (from 1) is trained.

    goes_on: with the trunk, its optimizer's moments and its rate; there is nothing to warm up

    Raises:
        InvalidSettingError: an override has an unknown name.
    """
    chosen = dict(overrides or {})
    if unknown := sorted(set(chosen) - PLAN_OVERRIDES - SHAPE_OVERRIDES):
        raise InvalidSettingError(f"training.{unknown[0]} is no setting of a training run")
    recipe, is_first = shape.recipe, round_number == 1
    steps = int(chosen.get("steps", recipe.first_steps if is_first else recipe.later_steps))
    peak = recipe.learning_rate if is_first or goes_on else recipe.later_learning_rate
    warmup_steps = min(MOST_WARMUP_STEPS, max(1, round(steps * recipe.warmup_fraction)))
    return TrainPlan(
        steps=steps,
        batch_sequences=int(chosen.get("batch_sequences", recipe.batch_sequences)),
        micro_batch_sequences=recipe.micro_batch_sequences,
        learning_rate=float(chosen.get("learning_rate", peak)),
        warmup_steps=0 if goes_on else warmup_steps,
        decay_steps=round(steps * recipe.decay_fraction),
        weight_decay=recipe.weight_decay,
        clip_norm=recipe.clip_norm,
        checkpoint_every_steps=recipe.checkpoint_every_steps,
        seed=seed,
        options=recipe.options,
        keeps_trunk=True,
    )


def _without(plain: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    return {name: value for name, value in plain.items() if name not in names}


def shape_of_config(name: str, config: Mapping[str, Any], recipe: Recipe) -> ModelShape:
    """Return the shape of a model that is given as Hugging Face's config.json.

    Raises:
        UsageError: the file doesn't say what a causal language model needs.
    """
    return ModelShape.from_plain(
        {**shape_fields(name, config), "version": 1, "size": name, "recipe": recipe.to_plain()}
    )
