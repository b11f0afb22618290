"""Why a cycle with a large model had better begin with an open base model than with nothing.

Pure. Owns the arithmetic and its words. A model that knows nothing needs about twenty tokens for
each parameter (Hoffmann et al. 2022, "Training Compute-Optimal Large Language Models"); one that
others trained on such text needs the cycle's own.
"""

LARGE_PARAMETERS = 400_000_000
"""From the size 500m on."""

TOKENS_PER_PARAMETER = 20

DAY_S = 86_400.0


def advice(parameters: int, tokens_per_s: float, cycle_tokens: int) -> list[str]:
    """Return what is said of a cycle that begins with drawn weights; nothing of a small model.

    Args:
        parameters: of the model.
        tokens_per_s: of the training, 0 where nobody knows.
        cycle_tokens: that all its rounds train on.
    """
    if parameters < LARGE_PARAMETERS:
        return []
    needed = TOKENS_PER_PARAMETER * parameters
    told = (
        f"Recommended: --init FOLDER|ORG/NAME, an open base model; from scratch {needed / 1e9:.0f}"
    )
    if not tokens_per_s:
        return [f"{told} billion tokens are needed, and this cycle trains on {_told(cycle_tokens)}"]
    scratch, own = _time(needed / tokens_per_s), _time(cycle_tokens / tokens_per_s)
    base = f"from a base this cycle's {_told(cycle_tokens)} tokens, {own}"
    return [f"{told} billion tokens are needed, {scratch} here; {base}"]


def _told(tokens: int) -> str:
    return f"{tokens / 1e9:.1f} billion" if tokens >= 1e9 else f"{tokens / 1e6:,.1f} million"


def _time(seconds: float) -> str:
    days = seconds / DAY_S
    if days >= 14:
        return f"{days / 7:,.0f} weeks"
    return f"{days:.1f} days" if days >= 1 else f"{seconds / 3600:.1f} hours"
