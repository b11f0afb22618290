"""Why a cycle with a large model had better begin with an open base model than with nothing.

Pure. Owns the arithmetic and its words. A model that knows nothing needs about twenty tokens for
each parameter (Hoffmann et al. 2022, "Training Compute-Optimal Large Language Models"). One that
others trained needs a small part of that to learn a domain: Gururangan et al. 2020, "Don't Stop
Pretraining", took a fortieth of the steps; a tenth is reckoned here.
"""

LARGE_PARAMETERS = 400_000_000
"""From the size 500m on."""

TOKENS_PER_PARAMETER = 20
PART_FROM_A_BASE = 10

DAY_S = 86_400.0


def advice(parameters: int, tokens_per_s: float) -> list[str]:
    """Return what is said of a cycle that begins with drawn weights; nothing of a small model.

    Args:
        parameters: of the model.
        tokens_per_s: of the training, 0 where nobody knows.
    """
    if parameters < LARGE_PARAMETERS:
        return []
    needed = TOKENS_PER_PARAMETER * parameters
    scratch = _tokens_and_time(needed, tokens_per_s)
    base = _tokens_and_time(needed // PART_FROM_A_BASE, tokens_per_s)
    named = "Recommended: --init FOLDER|ORG/NAME, an open base model"
    return [f"{named}: from scratch about {scratch}; from a base a tenth or less, {base}"]


def _tokens_and_time(tokens: int, tokens_per_s: float) -> str:
    took = f" ({_time(tokens / tokens_per_s)})" if tokens_per_s else ""
    return f"{tokens / 1e9:.1f} billion tokens{took}"


def _time(seconds: float) -> str:
    days = seconds / DAY_S
    if days >= 14:
        return f"{days / 7:,.0f} weeks"
    return f"{days:.1f} days" if days >= 1 else f"{seconds / 3600:.1f} hours"
