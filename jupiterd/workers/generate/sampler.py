"""Writing on from several prompts at once, with a cache of keys and values.

Owns the loop and how tokens are drawn. Doesn't know what the texts are for. Each row has a seed of
its own, so what a row says doesn't depend on which others are in its batch, as far as a machine's
rounding doesn't.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from transformers import DynamicCache

from jupiterd.workers.generate.engine import Sampling
from jupiterd.workers.generate.model_folder import OpenModel

MAX_CHOICES = 256
"""The likeliest tokens, which alone are drawn from: sorting a whole vocabulary costs more than a
small model."""


def write_on(
    generator: OpenModel,
    prompts: Sequence[Sequence[int]],
    sampling: Sampling,
    seeds: Sequence[int],
    is_done: Callable[[int, Sequence[int]], bool] = lambda _row, _tokens: False,
) -> list[tuple[list[int], bool]]:
    """Return what follows each prompt, without the end mark, and whether it ended by itself.

    `is_done` is asked about each row's number and tokens so far; the writing ends when every row
    is done.
    """
    widest = max(len(prompt) for prompt in prompts)
    budget = min(sampling.max_tokens, generator.max_tokens - widest)
    rows: list[list[int]] = [[] for _ in prompts]
    is_open = [True] * len(prompts)
    tokens, mask = _left_padded(prompts, widest, generator)
    draws = _draws(seeds, max(0, budget), generator.device)
    cache = DynamicCache()
    with torch.inference_mode():
        for step in range(budget):
            logits, mask = _next_logits(generator, tokens, mask, cache)
            tokens = _drawn(logits, sampling, draws[:, step])
            for number, token in enumerate(tokens[:, 0].tolist()):
                if is_open[number] and token not in generator.text.ends:
                    rows[number].append(token)
                    is_open[number] = not is_done(number, rows[number])
                else:
                    is_open[number] = False
            if not any(is_open):
                break
    return [(row, not still) for row, still in zip(rows, is_open, strict=True)]


def _left_padded(
    prompts: Sequence[Sequence[int]], widest: int, generator: OpenModel
) -> tuple[Tensor, Tensor]:
    """Return tokens and mask, each int64[rows, widest], with every prompt ending at the right."""
    tokens = torch.full((len(prompts), widest), generator.filler)
    mask = torch.zeros((len(prompts), widest), dtype=torch.int64)
    for row, prompt in enumerate(prompts):
        tokens[row, widest - len(prompt) :] = torch.tensor(prompt)
        mask[row, widest - len(prompt) :] = 1
    return tokens.to(generator.device), mask.to(generator.device)


def _draws(seeds: Sequence[int], steps: int, device: str) -> Tensor:
    """Return numbers in [0, 1), float32[rows, steps]: those of a row follow from its seed."""
    rows = [torch.rand(steps, generator=torch.Generator().manual_seed(seed)) for seed in seeds]
    return torch.stack(rows).to(device)


def _next_logits(
    generator: OpenModel, tokens: Tensor, mask: Tensor, cache: DynamicCache
) -> tuple[Tensor, Tensor]:
    """Return float32[rows, vocabulary] for the next token, and the mask that includes it."""
    positions = (mask.cumsum(1) - 1).clamp(min=0)[:, -tokens.shape[1] :]
    out = generator.model(
        input_ids=tokens,
        attention_mask=mask,
        position_ids=positions,
        past_key_values=cache,
        use_cache=True,
        logits_to_keep=1,
    )
    return out.logits[:, -1].float(), torch.cat([mask, mask.new_ones((len(mask), 1))], dim=1)


def _drawn(logits: Tensor, sampling: Sampling, draws: Tensor) -> Tensor:
    """Return int64[rows, 1]: where a row's number falls on its likeliest tokens' chances."""
    if sampling.temperature <= 0:
        return logits.argmax(-1, keepdim=True)
    likeliest = min(MAX_CHOICES, logits.shape[-1])
    chances, order = torch.softmax(logits / sampling.temperature, -1).topk(likeliest)
    before = chances.cumsum(-1) - chances
    chances[before >= sampling.top_p] = 0.0
    bounds = chances.cumsum(-1)
    wanted = draws[:, None] * bounds[:, -1:]
    chosen = (bounds <= wanted).sum(-1, keepdim=True).clamp(max=likeliest - 1)
    return order.gather(1, chosen)
