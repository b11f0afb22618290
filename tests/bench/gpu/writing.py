"""Tokens per second that a model writes, beside transformers' own loop with the same batch.

Owns the comparison: the same prompts, as many new tokens, drawn from the same share of chances.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch
from transformers import GenerationConfig

from jupiterd.workers.generate.engine import Sampling
from jupiterd.workers.generate.model_folder import OpenModel, open_model
from jupiterd.workers.generate.sampler import MAX_CHOICES, rows_written
from tests.bench.gpu.random_model import configs, texts, write_model
from tests.bench.gpu.row import Row

PROMPTS, PROMPT_TOKENS, NEW_TOKENS = 64, 64, 128
SAMPLING = Sampling(NEW_TOKENS, 1.0, 0.95)


def rows(device: str = "cuda") -> Iterator[Row]:
    """Yield ours and transformers' tokens/s for each shape."""
    with tempfile.TemporaryDirectory() as folder:
        for name, config in configs().items():
            opened = open_model(write_model(Path(folder) / name, config), device)
            prompts = [opened.text.tokenizer.encode(text).ids for text in texts(PROMPTS)]
            prompts = [ids[:PROMPT_TOKENS] for ids in prompts]
            own = rate_of(lambda o=opened, p=prompts: our_tokens(o, p))
            other = rate_of(lambda o=opened, p=prompts: their_tokens(o, p))
            note = f"{PROMPTS} prompts of {PROMPT_TOKENS} tokens, {NEW_TOKENS} new each"
            yield Row(f"writing at {name}'s shape", own, "tokens/s", other, note)


def rate_of(write: Callable[[], int]) -> float:
    """Return tokens per second of the second of two calls."""
    write()
    began_s = time.perf_counter()
    return write() / (time.perf_counter() - began_s)


def our_tokens(opened: OpenModel, prompts: Sequence[Sequence[int]]) -> int:
    """Write with Jupiter's loop, and return how many tokens came."""
    seeds = range(len(prompts))
    return sum(len(row.tokens) for row in rows_written(opened, prompts, SAMPLING, seeds))


def their_tokens(opened: OpenModel, prompts: Sequence[Sequence[int]]) -> int:
    """Write with transformers' loop, and return how many tokens came."""
    rule = GenerationConfig(
        do_sample=True,
        temperature=SAMPLING.temperature,
        top_k=MAX_CHOICES,
        top_p=SAMPLING.top_p,
        max_new_tokens=NEW_TOKENS,
        pad_token_id=0,
        eos_token_id=0,
    )
    fed = torch.tensor(list(map(list, prompts)), device=opened.device)
    written = opened.model.generate(
        fed, attention_mask=torch.ones_like(fed), generation_config=rule
    )
    return int((written[:, fed.shape[1] :] != 0).sum())
