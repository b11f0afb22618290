"""Writing on from several prompts at once, with a cache of keys and values.

Owns the loop and how tokens are drawn. Doesn't know what the texts are for. Each row has a seed of
its own, so what a row says doesn't depend on which others are in its batch, as far as a machine's
rounding doesn't.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import DynamicCache

from jupiterd.workers.generate.engine import OnTokens, Sampling, nobody
from jupiterd.workers.generate.model_folder import OpenModel

MAX_CHOICES = 256
"""The likeliest tokens, which alone are drawn from: sorting a whole vocabulary costs more than a
small model."""

IsDone = Callable[[int, Sequence[int]], bool]
"""Says of a prompt's place and the tokens behind it that nothing more is wanted."""


def write_on(
    generator: OpenModel,
    prompts: Sequence[Sequence[int]],
    sampling: Sampling,
    seeds: Sequence[int],
    is_done: IsDone = lambda _row, _tokens: False,
) -> list[tuple[list[int], bool]]:
    """Return what follows each prompt, without the end mark, and whether it ended by itself.

    `is_done` is asked about each row's number and tokens so far.
    """
    found = {row.number: row for row in rows_written(generator, prompts, sampling, seeds, is_done)}
    return [(found[number].tokens, found[number].is_whole) for number in range(len(prompts))]


@dataclass
class Continuation:
    """What follows one prompt."""

    number: int
    """The prompt's place."""
    tokens: list[int]
    """Without the end mark."""
    is_whole: bool = False
    """It ended by itself."""


def rows_written(
    generator: OpenModel,
    prompts: Sequence[Sequence[int]],
    sampling: Sampling,
    seeds: Sequence[int],
    is_done: IsDone = lambda _row, _tokens: False,
    on_tokens: OnTokens = nobody,
) -> Iterator[Continuation]:
    """Yield what follows each prompt as soon as it is whole; those that are cut off come last.

    Rows that are whole leave the batch, so that it costs no more than what is still written.

    on_tokens: hears how many tokens each step has brought
    """
    widest = max(len(prompt) for prompt in prompts)
    budget = min(sampling.max_tokens, generator.max_tokens - widest)
    rows = [Continuation(number, []) for number in range(len(prompts))]
    batch = _Batch(generator, prompts, _draws(seeds, max(0, budget), generator.device))
    for step in range(budget):
        tokens = batch.next(sampling, step)
        open_at: list[int] = []
        for at, (row, token) in enumerate(zip(rows, tokens, strict=True)):
            if token not in generator.text.ends:
                row.tokens.append(token)
                row.is_whole = is_done(row.number, row.tokens)
            else:
                row.is_whole = True
            if not row.is_whole:
                open_at.append(at)
        on_tokens(len(tokens))
        yield from (row for row in rows if row.is_whole)
        if not open_at:
            return
        if len(open_at) < len(rows):
            rows = [rows[at] for at in open_at]
            batch.keep(open_at)
    yield from rows


class _Batch:
    """The rows that are written together."""

    def __init__(
        self, generator: OpenModel, prompts: Sequence[Sequence[int]], draws: Tensor
    ) -> None:
        self._generator = generator
        self._draws = draws
        self._cache = DynamicCache()
        widest = max(len(prompt) for prompt in prompts)
        self._tokens, self._mask = _left_padded(prompts, widest, generator)

    @torch.inference_mode()
    def next(self, sampling: Sampling, step: int) -> list[int]:
        """Return the next token of each row."""
        logits, self._mask = _next_logits(self._generator, self._tokens, self._mask, self._cache)
        self._tokens = _drawn(logits, sampling, self._draws[:, step])
        return self._tokens[:, 0].tolist()

    @torch.inference_mode()
    def keep(self, places: Sequence[int]) -> None:
        """Go on with these rows alone."""
        chosen = torch.tensor(places, device=self._tokens.device)
        self._tokens, self._mask = self._tokens[chosen], self._mask[chosen]
        self._draws = self._draws[chosen]
        self._cache.batch_select_indices(chosen)


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
