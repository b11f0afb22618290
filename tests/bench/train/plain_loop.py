"""A training loop as nanoGPT has it, and nanoGPT's own model: what ours is measured against.

Owns both, written as plainly as there. Doesn't know ours, nor who measures.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional


class CausalAttention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        q, k, v = (
            part.view(batch, tokens, self.heads, width // self.heads).transpose(1, 2)
            for part in self.c_attn(x).split(width, dim=2)
        )
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).contiguous().view(batch, tokens, width))


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = CausalAttention(width, heads)
        self.c_fc, self.c_proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.c_proj(functional.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))


class NanoGpt(nn.Module):
    """nanoGPT's model: GPT-2 with tied weights and no dropout."""

    def __init__(self, vocab_size: int, seq_len: int, width: int, layers: int, heads: int) -> None:
        super().__init__()
        self.wte = nn.Embedding(vocab_size, width)
        self.wpe = nn.Embedding(seq_len, width)
        self.h = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, vocab_size, bias=False)
        self.apply(_first_weights)
        self.lm_head.weight = self.wte.weight

    def forward(self, ids: Tensor) -> Tensor:
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1], device=ids.device))
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))


def _first_weights(module: nn.Module) -> None:
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)


class PlainLoop:
    """nanoGPT's train.py, without what isn't training."""

    def __init__(
        self,
        model: nn.Module,
        logits_of: Callable[[Tensor], Tensor],
        tokens: Path,
        batch: tuple[int, int, int],
        device: str = "cpu",
    ) -> None:
        """batch: micro batches in a step, sequences in each, tokens in each of those."""
        self.model, self.logits_of, self.tokens, self.batch = model, logits_of, tokens, batch
        self.device = device
        decayed = [p for p in model.parameters() if p.dim() >= 2]
        others = [p for p in model.parameters() if p.dim() < 2]
        groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95), fused=True)

    def step(self) -> float:
        """Take one optimizer step, as nanoGPT does."""
        micro_batches, total = self.batch[0], 0.0
        for _ in range(micro_batches):
            ids, targets = self._batch()
            with torch.autocast(self.device, torch.bfloat16, enabled=self.device != "cpu"):
                logits = self.logits_of(ids)
                loss = functional.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))
            loss = loss / micro_batches
            loss.backward()
            total += loss.item()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return total

    def _batch(self) -> tuple[Tensor, Tensor]:
        _, sequences, length = self.batch
        data = np.memmap(self.tokens, dtype=np.uint16, mode="r")
        starts = torch.randint(len(data) - length, (sequences,))
        rows = [data[i : i + length + 1].astype(np.int64) for i in starts.tolist()]
        whole = torch.from_numpy(np.stack(rows)).to(self.device, non_blocking=True)
        return whole[:, :-1].contiguous(), whole[:, 1:].contiguous()
