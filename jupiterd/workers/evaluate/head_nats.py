"""What tokens cost by the hidden states before them: the output layer and its softmax, in blocks.

Owns how much of the logits exists at a time. On a CPU a block stays in the cache: the product with
some of the vocabulary is summed up before the next one is computed, which took three quarters of
the time of whole rows (25 million parameters, a vocabulary of 32,768). Doesn't know models.
"""

from typing import NamedTuple, cast

import torch


class HeadBlock(NamedTuple):
    """How much of the logits exists at a time."""

    rows: int
    """Scored positions."""
    entries: int
    """Of the vocabulary."""


CPU_BLOCK = HeadBlock(512, 1024)
"""2 MiB of 32-bit floats."""

GPU_BLOCK_BYTES = 1 << 29
"""Of logits on a GPU, which take twice as much while they are summed up."""

_FEWEST_ROWS = 64
"""So many fit wherever the model does."""


def gpu_block(vocab_size: int, room_bytes: int) -> HeadBlock:
    """Return a block of whole rows, as many as fit into a part of the room."""
    rows = min(GPU_BLOCK_BYTES, room_bytes // 4) // (4 * vocab_size)
    return HeadBlock(max(_FEWEST_ROWS, rows), vocab_size)


def head_nats(
    hidden: torch.Tensor, head: torch.nn.Linear, wanted: torch.Tensor, block: HeadBlock
) -> torch.Tensor:
    """Return -log probability of each wanted token, float32[n].

    Args:
        hidden: the state before each, float32[n, width].
        head: the output layer, with or without a bias.
        wanted: the tokens, int64[n].
        block: how much exists at a time.
    """
    parts = zip(hidden.split(block.rows), wanted.split(block.rows), strict=True)
    found = [_log_sums(rows, head, block.entries) - _chosen(rows, head, ids) for rows, ids in parts]
    return torch.cat(found) if found else hidden.new_zeros(0)


def _log_sums(rows: torch.Tensor, head: torch.nn.Linear, entries: int) -> torch.Tensor:
    """Return the logarithm of the sum of all exp(logit) of each row, float32[n]."""
    bias = _bias(head)
    weights = head.weight.split(entries)
    buffer = rows.new_empty(len(rows) * len(weights[0]))
    sums: list[torch.Tensor] = []
    for number, part in enumerate(weights):
        logits = buffer[: len(rows) * len(part)].view(len(rows), len(part))
        torch.mm(rows, part.t(), out=logits)
        if bias is not None:
            logits += bias[number * entries : number * entries + len(part)]
        sums.append(torch.logsumexp(logits, -1))
    return torch.logsumexp(torch.stack(sums), 0)


def _chosen(rows: torch.Tensor, head: torch.nn.Linear, ids: torch.Tensor) -> torch.Tensor:
    """Return the logit of one token of each row, float32[n]."""
    logits, bias = (rows * head.weight[ids]).sum(-1), _bias(head)
    return logits if bias is None else logits + bias[ids]


def _bias(head: torch.nn.Linear) -> torch.Tensor | None:
    """Return the bias; torch's types don't say that there may be none."""
    return cast("torch.Tensor | None", head.bias)
