"""How weights that others trained are tuned: gently, and for a few passes.

Pure. Owns the rate that follows from a model's size, the rest of that recipe, and what is said of
it. Doesn't know where weights come from, or what a step does with a rate.

Full tuning of 7 billion parameters takes 2e-5, a warm-up of 3 %, three passes and no weight decay
(Taori et al. 2023, Stanford Alpaca, README). Larger models take less: 1e-5 at 13 billion (the same
page), 2e-6 at 70 billion (Lambert et al. 2024, "Tulu 3", arXiv 2411.15124), which is 2e-5 times 7
billion through the parameters. SmolLM2 of 135 million was tuned well with 2e-5, too. Below
that the best rate of Adam grows as a model gets narrower, with one through its width, so with one
through the root of its parameters (Yang et al. 2022, "Tensor Programs V", arXiv 2203.03466).
"""

import math

from jupiterd.cycle.training.adapters.adapter_size import adapter_parameters
from jupiterd.cycle.training.architectures import parameter_count
from jupiterd.cycle.training.plan import ModelShape, TrainPlan

USUAL_RATE = 2e-5
SMALL_PARAMETERS = 135_000_000
LARGE_PARAMETERS = 7_000_000_000
MOST_RATE = 8e-5
"""Of the smallest models."""
ADAPTER_FACTOR = 10
"""An adapter's best rate beside that of all weights: about ten times, whatever the model's size
(Schulman et al. 2025, "LoRA Without Regret", Thinking Machines Lab)."""
HIGH_RATE = 1e-4
"""From here on weights soon forget what they knew: SmolLM2 was ruined by 3e-3."""

WARMUP_FRACTION = 0.03
MOST_WARMUP_STEPS = 100


def tuning_rate(parameters: int) -> float:
    """Return the peak of the learning rate for weights of so many parameters, to two digits."""
    if parameters > LARGE_PARAMETERS:
        rate = USUAL_RATE * LARGE_PARAMETERS / parameters
    else:
        rate = USUAL_RATE * math.sqrt(max(1.0, SMALL_PARAMETERS / max(1, parameters)))
    return float(f"{min(MOST_RATE, rate):.1e}")


def tuned(shape: ModelShape, *, has_adapter: bool = False) -> ModelShape:
    """Return the model with the recipe for weights that are given, in place of its size's own.

    has_adapter: an adapter is trained beside them
    """
    rate = tuning_rate(parameter_count(shape)) * (ADAPTER_FACTOR if has_adapter else 1)
    changed = {
        "learning_rate": rate,
        "later_learning_rate": rate,
        "warmup_fraction": WARMUP_FRACTION,
        "weight_decay": 0.0,
    }
    return shape.model_copy(update={"recipe": shape.recipe.model_copy(update=changed)})


def shortly_warmed(plan: TrainPlan) -> TrainPlan:
    """Return the plan with a warm-up that is short enough for weights that are given."""
    return plan.model_copy(update={"warmup_steps": min(MOST_WARMUP_STEPS, plan.warmup_steps)})


def tuning_lines(shape: ModelShape, plan: TrainPlan) -> list[str]:
    """Return what is said of how weights are tuned, before anything starts."""
    adapter = plan.options.adapter
    parameters, factor = parameter_count(shape), 1 if adapter is None else ADAPTER_FACTOR
    usual, size = tuning_rate(parameters) * factor, f"{_millions(parameters)} parameters"
    rate = plan.learning_rate
    what = "weights of" if adapter is None else "an adapter to"
    why = f"tunes {what} {size}" if rate == usual else f"as asked; {usual:g} is usual at {size}"
    how = f"warm-up {_warmup(plan)}, weight decay {plan.weight_decay:g}"
    lines = [f"Learning rate {rate:g}: {why}; {how}"]
    if adapter is not None:
        trained = adapter_parameters(shape, adapter)
        share = f"{_millions(trained)} numbers, {trained / parameters:.2%} of the model's own"
        lines.append(f"Adapter {adapter.to_text()}: {share}, which stay as they are")
    if high := why_high(rate, has_adapter=adapter is not None):
        lines.append(f"A learning rate of {rate:g} {high}")
    return lines


def usual_adapter_lines(machine: str | None) -> list[str]:
    """Return where an adapter comes from that nobody asked for; machine: whose settings say so."""
    if not machine:
        return []
    return [
        f"lora in jupiter.yaml of {machine} asks for the adapter; --lora off trains all weights"
    ]


def _millions(count: int) -> str:
    return f"{count / 1e6:,.0f} million" if count >= 10**7 else f"{count / 1e6:.2f} million"


def why_high(rate: float, *, has_adapter: bool = False) -> str:
    """Return what follows from a learning rate that is high; empty: it isn't.

    has_adapter: it is an adapter's, beside the weights
    """
    high = HIGH_RATE * (ADAPTER_FACTOR if has_adapter else 1)
    if rate < high:
        return ""
    what = "an adapter" if has_adapter else "weights that are given"
    who = "the model soon forgets what it" if has_adapter else "they soon forget what they"
    return f"is high for {what}: from {high:g} on {who} knew"


def _warmup(plan: TrainPlan) -> str:
    if not plan.steps:
        return f"{WARMUP_FRACTION:.0%} of the steps"
    return "1 step" if plan.warmup_steps == 1 else f"{plan.warmup_steps:,} steps"
