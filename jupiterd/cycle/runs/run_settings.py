"""What people ask for when they prepare data, or train without the cycle.

Owns the names, the defaults and the bounds. Doesn't know flags, files or nodes: a fact carries
these values as plain scalars.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from jupiterd.cycle.runs.recorded_settings import OF_THE_SIZE, OF_TUNING
from jupiterd.cycle.training.adapters.adapter import AdapterOptions, parse_adapter
from jupiterd.cycle.training.architectures import MAX_VOCAB
from jupiterd.cycle.training.engine_options import EngineOptions
from jupiterd.errors import UsageError
from jupiterd.protocol.frames import Scalar

AUTO = "auto"
WHICH_ISLANDS = "auto, on, off, or who they are: 'mlx:mini,studio torch:box'"
ISLANDS = r"^(auto|on|preferred|off|(torch|mlx):[^\s:]+( (torch|mlx):[^\s:]+)*)$"


FROM_SETTINGS, FROM_DATA = "settings", "data"

OF_A_STEP = frozenset({"batch_size", "gradient_accumulation_steps"})
"""Either says how many sequences a step of a run takes."""

OF_ISLANDS = ("islands", "island_nodes", "sync_every", "sync", "outer", "ways")
"""What people may say of how islands train a cycle's rounds: names in facts and commands."""


class CheckedOptions(BaseModel):
    """What people ask for, checked: its values are plain scalars."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def to_scalars(self) -> dict[str, Scalar]:
        """Return what a fact carries."""
        return self.model_dump(mode="json", by_alias=True)

    @classmethod
    def parse(cls, given: Any) -> Self:  # noqa: ANN401 - it comes over the wire
        """Return checked values; raises UsageError for the first that can't be."""
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            name = ".".join(map(str, first["loc"])) or "the settings"
            if name == "islands":
                raise UsageError(f"{name} can't be {first['input']!r}", WHICH_ISLANDS) from error
            raise UsageError(f"{name.replace('_', '-')}: {first['msg'].lower()}") from error


class RunSettings(CheckedOptions):
    """How a training run goes, beside its model and its data."""

    max_steps: Annotated[int, Field(ge=1, le=100_000_000)] | None = None
    """Optimizer steps; None: as many as the passes need."""
    epochs: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """Passes over the data; None: one, or as many as the steps need."""
    steps_from: Literal["settings", "data"] = FROM_SETTINGS
    """What decides how many steps there are: what is said above, or of a cycle its size and domain;
    or how much text there is, see `training.step_budget`. What older builds started lacks it."""
    seq_len: Annotated[int, Field(ge=16, le=131_072)] = 1024
    batch_size: Annotated[int, Field(ge=1, le=65_536)] = 1
    """Sequences that a device holds at a time."""
    gradient_accumulation_steps: Annotated[int, Field(ge=1, le=65_536)] = 32
    micro_batch: Annotated[int, Field(ge=0, le=65_536)] = 0
    """What a device holds at a time where the batch size doesn't fit its memory; 0: it fits."""
    ranks: Annotated[int, Field(ge=1, le=65_536)] = 1
    """Members of the gang when the run was asked for: the batch is the same ever after."""
    max_ranks: Annotated[int, Field(ge=0, le=65_536)] = 0
    """0: any number."""
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    gradient_checkpointing: Literal["auto", "on", "off"] = "auto"
    attention: Literal["auto", "sdpa", "flash"] = "auto"
    document_masks: Literal["on", "off"] = "off"
    """Off whatever the size has: losses are comparable with those of other trainers then."""
    optimizer: Literal["auto", "adamw", "muon"] = "auto"
    """Auto: the size's own."""
    weights: Literal["auto", "fp32", "bf16"] = "auto"
    """Auto: the size's own."""
    learning_rate: Annotated[float, Field(gt=0.0, le=1.0)] | None = None
    """None: the size's own."""
    weight_decay: Annotated[float, Field(ge=0.0, le=1.0)] | None = None
    """None: the size's own."""
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] = 1
    start_from: Annotated[str, Field(pattern=r"^([0-9a-f]{64})?$")] = ""
    """Artifact with the weights to begin with; empty: they are drawn at random."""
    recipe: Literal["size", "tuning"] = OF_THE_SIZE
    """Whose rate, warm-up, decay and passes are taken, in all rounds: those of the size, or those
    for weights that were given, see `training.tuning`. What older builds started has the size's."""
    least_batch: Annotated[int, Field(ge=0, le=65_536)] = 0
    """Fewest sequences of a step, where the data decides how many (`training.tuning_batch`); 0: as
    many as is said, or as the size has. What older builds started lacks it."""
    islands: Annotated[str, Field(pattern=ISLANDS, max_length=4096)] = AUTO
    """Whether several gangs train it, exchanging what they have learned now and then: on, off,
    or who they are, such as `mlx:mini torch:box`; auto: where that is predicted to be best."""
    island_nodes: Annotated[str, Field(pattern=r"^((torch|mlx):[\w,]+( |$))*$")] = ""
    """What was made of that when the run was asked for: each island's engine and nodes, such as
    `mlx:a,b torch:c`; empty: one gang trains."""
    sync_every: Annotated[int, Field(ge=0, le=100_000)] = 0
    """Steps that islands train between two exchanges; 0: as the planner thinks best."""
    sync: Literal["blocking", "overlapped"] = "overlapped"
    """Whether islands wait for the exchange, or train on in the meantime."""
    outer: Literal["nesterov", "average"] = "nesterov"
    """How they merge what they have learned."""
    pseudo_gradient_format: Literal["int8", "bf16", "fp32"] = Field("int8", alias="ways")
    """In which number format they send their pseudo-gradients; facts and commands call it `ways`.
    """

    gang_encryption: Literal["on", "off"] = "off"
    """Whether ranks talk through tunnels of their daemons. What older builds started lacks it."""

    gang_backend: Literal["auto", "gloo"] = "auto"
    """What ranks on torch talk over; auto: NCCL where all of them can. Older builds know none."""

    fixed_micro_batch: Annotated[int, Field(ge=0, le=65_536)] = 0
    """What every device holds at a time, as people say; 0: what fills it. Older builds know none.
    """

    lora: Annotated[str, Field(max_length=256)] = ""
    """The adapter that is trained beside the weights to begin with, as `adapters.adapter`
    reads it; empty: all weights are trained. Older builds know none."""

    adapter_from: Annotated[str, Field(pattern=r"^([0-9a-f]{64})?$")] = ""
    """The artifact of an adapter to begin with, such as that of the round before; empty: a new one
    is drawn. Older builds know none."""

    shard: Literal["", "auto", "off", "1", "2", "3"] = ""
    """What of the model is cut over the ranks of a gang, by `training.partition`: a stage, off, or
    auto: no more than takes for it to fit; empty: nobody has said, and it was whole at the start.
    Older builds know none."""

    memory: Annotated[str, Field(max_length=16_384)] = ""
    """What it may use of members' memory, in GB: `cluster.training.memory_limits` reads it; empty:
    all that there is. Older builds know none."""

    def to_scalars(self) -> dict[str, Scalar]:
        """Return what a fact carries, without a choice that nobody made and older builds refuse."""
        told = super().to_scalars()
        if self.gang_backend == AUTO:
            del told["gang_backend"]
        for name in ("fixed_micro_batch", "lora", "adapter_from", "shard", "memory"):
            if not told[name]:
                del told[name]
        return told

    def options(self, of_the_size: EngineOptions) -> EngineOptions:
        """Return how it is computed: as asked, and for the rest as the size has it."""
        requested = {
            "precision": self.precision,
            "gradient_checkpointing": self.gradient_checkpointing,
            "attention": self.attention,
            "document_masks": self.document_masks,
            "optimizer": self.optimizer,
            "weights": self.weights,
        }
        chosen = {name: value for name, value in requested.items() if value != AUTO}
        if self.fixed_micro_batch:
            chosen["micro_batch"] = "fixed"
        return self.adapted(of_the_size.model_copy(update=chosen))

    def adapted(self, options: EngineOptions) -> EngineOptions:
        """Return how it is computed where an adapter may be trained; raises as `adapter`."""
        adapter = self.adapter
        kept = {} if adapter is None else {"optimizer": "adamw", "weights": "fp32"}
        return options.model_copy(update={**kept, "adapter": adapter})

    @property
    def adapter(self) -> AdapterOptions | None:
        """Return the adapter that is trained; raises UsageError where it can't be."""
        if not self.lora:
            return None
        if not self.start_from and self.recipe != OF_TUNING:
            raise UsageError(
                "an adapter is trained beside weights that are there",
                "name a model that has some: --model FOLDER, or ORG/NAME on the hub",
            )
        if self.optimizer == "muon" or self.weights == "bf16":
            raise UsageError(
                "an adapter's numbers are AdamW's, in fp32", "leave out --optimizer and weights"
            )
        return parse_adapter(self.lora).model_copy(update={"base": self.start_from})

    @property
    def batch_sequences(self) -> int:
        """Return the effective batch: what one optimizer step trains on, over all ranks."""
        return self.batch_size * self.gradient_accumulation_steps * self.ranks

    def shared_by(self, ranks: int) -> Self:
        """Return them where so many ranks share a step, so that each has a sequence of it.

        Nothing changes where its sequences don't follow from the text. More than the size has are
        never taken, see `training.tuning_batch`.
        """
        if not self.least_batch:
            return self
        return self.model_copy(update={"least_batch": max(self.least_batch, ranks)})


class DataSettings(CheckedOptions):
    """Where text comes from, and how it becomes a data set."""

    kind: Literal["folder", "hugging_face"]
    path: Annotated[str, Field(min_length=1, max_length=4096)]
    """A folder or file on one machine's disk, or the name of a Hugging Face data set."""
    subset: Annotated[str, Field(max_length=256)] = ""
    """Of a Hugging Face data set, such as 20231101.es."""
    split: Annotated[str, Field(min_length=1, max_length=256)] = "train"
    field: Annotated[str, Field(min_length=1, max_length=256)] = "text"
    """What holds the text in a row of a table, or in a line of JSON."""
    max_tokens: Annotated[int, Field(ge=0)] = 0
    """0: all of them."""
    tokenizer_path: Annotated[str, Field(max_length=4096)] = ""
    """A Hugging Face folder on the same disk whose tokenizer is used; empty: one is trained."""
    vocab_size: Annotated[int, Field(ge=257, le=MAX_VOCAB)] = 32_768
    """Entries of the tokenizer, if one is trained."""
    holdout: Annotated[float, Field(ge=0.0, le=0.5)] = 0.05
    """Share of the documents that is held out for validation; 0: none."""
    loss_on: Literal["all", "answers"] = "answers"
    """Of rows with messages, or prompt and completion: which tokens the loss counts."""
