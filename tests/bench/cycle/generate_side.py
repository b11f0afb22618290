"""One side of the generation figure: writes with one engine at one batch size, and tells its time.

python -m tests.bench.cycle.generate_side write_model|measure FOLDER JSON
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

from jupiterd.cycle.templates.prompt import Prompt
from jupiterd.workers.generate.engine import Request, Sampling, WritingEngine
from tests.bench.cycle.generate import MAX_TOKENS, PROMPT_CHARS, SHAPE


def main() -> None:
    """Do what the command line says."""
    what, folder, told = sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3])
    if what == "write_model":
        from tests.support.workers.tiny_models import write_model

        write_model(folder, "qwen3", vocab_size=4096, **SHAPE)
        return
    print(json.dumps(_measured(_engine(folder, told["engine"]), told["batch"], told["prompts"])))


def _engine(folder: Path, name: str) -> WritingEngine:
    if name == "mlx":
        from jupiterd.workers.generate.mlx_engine import MlxWritingEngine

        return MlxWritingEngine(folder)
    from jupiterd.workers.generate.transformers_engine import TransformersEngine

    return TransformersEngine(folder)


def _measured(engine: WritingEngine, batch: int, prompts: int) -> dict[str, Any]:
    sampling = Sampling(MAX_TOKENS, 0.8, 0.95)
    requests = [_request(number) for number in range(prompts)]
    list(engine.write(requests[:batch], Sampling(4, 0.8, 0.95)))  # what is loaded at first use
    began_s, began_cpu_s, tokens = time.perf_counter(), time.process_time(), 0
    for start in range(0, prompts, batch):
        written = engine.write(requests[start : start + batch], sampling)
        tokens += sum(each.tokens for _, each in written)
    return {
        "tokens_per_s": tokens / (time.perf_counter() - began_s),
        "tokens_per_cpu_s": tokens / (time.process_time() - began_cpu_s),
    }


def _request(number: int) -> Request:
    text = (f"loaf {number} rises as the yeast rests, and " * PROMPT_CHARS)[:PROMPT_CHARS]
    return Request(Prompt(text, text), number)


main()
