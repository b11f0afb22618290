"""Writing on from several prompts at once, with a cache of keys and values.

Owns the loop and how tokens are drawn. Doesn't know what the texts are for. A seed gives the same
texts again on the same kind of machine; rows of a batch don't influence each other but through
the draws' order.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import DynamicCache

from jupiterd.workers.generate.model_folder import Generator

MAX_CHOICES = 256
"""The likeliest tokens, which alone are drawn from: sorting a whole vocabulary costs more than a
small model."""


@dataclass(frozen=True)
class Sampling:
    """How tokens are drawn."""

    max_tokens: int
    """Written for each prompt at most."""
    temperature: float
    """0 takes the likeliest."""
    top_p: float
    """Share of the probability that is drawn from."""


def write_on(
    generator: Generator,
    prompts: Sequence[Sequence[int]],
    sampling: Sampling,
    draw: torch.Generator,
    is_done: Callable[[int, Sequence[int]], bool] = lambda _row, _tokens: False,
) -> list[list[int]]:
    """Return what follows each prompt, up to and without the end mark.

    `is_done` is asked about each row's number and tokens so far; the writing ends when every row
    is done.
    """
    widest = max(len(prompt) for prompt in prompts)
    budget = min(sampling.max_tokens, generator.max_tokens - widest)
    rows: list[list[int]] = [[] for _ in prompts]
    open_rows = [True] * len(prompts)
    tokens, mask = _left_padded(prompts, widest, generator.end_token)
    cache = DynamicCache()
    with torch.inference_mode():
        for _ in range(budget):
            logits, mask = _next_logits(generator, tokens, mask, cache)
            tokens = _drawn(logits, sampling, draw)
            for number, token in enumerate(tokens[:, 0].tolist()):
                if open_rows[number] and token != generator.end_token:
                    rows[number].append(token)
                    open_rows[number] = not is_done(number, rows[number])
                else:
                    open_rows[number] = False
            if not any(open_rows):
                break
    return rows


def _left_padded(
    prompts: Sequence[Sequence[int]], widest: int, filler: int
) -> tuple[Tensor, Tensor]:
    """Return tokens and mask, each int64[rows, widest], with every prompt ending at the right."""
    tokens = torch.full((len(prompts), widest), filler)
    mask = torch.zeros((len(prompts), widest), dtype=torch.int64)
    for row, prompt in enumerate(prompts):
        tokens[row, widest - len(prompt) :] = torch.tensor(prompt)
        mask[row, widest - len(prompt) :] = 1
    return tokens, mask


def _next_logits(
    generator: Generator, tokens: Tensor, mask: Tensor, cache: DynamicCache
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


def _drawn(logits: Tensor, sampling: Sampling, draw: torch.Generator) -> Tensor:
    """Return int64[rows, 1]."""
    if sampling.temperature <= 0:
        return logits.argmax(-1, keepdim=True)
    likeliest = min(MAX_CHOICES, logits.shape[-1])
    chances, order = torch.softmax(logits / sampling.temperature, -1).topk(likeliest)
    before = chances.cumsum(-1) - chances
    chances[before >= sampling.top_p] = 0.0
    return order.gather(1, torch.multinomial(chances, 1, generator=draw))
