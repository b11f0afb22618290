"""Puts a question to an exported model: `python -m tests.real.asked LIBRARY PATH TEXT`.

Owns the three libraries' own ways: transformers' and mlx-lm's with a folder, llama.cpp's with a
GGUF file; each with the chat template and the end that it finds there. Prints JSON: the answer, and
whether the model has ended it itself.
"""

import importlib
import json
import sys
from typing import Any

MOST_TOKENS = 96


def by_transformers(folder: str, text: str) -> tuple[str, bool]:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model: Any = AutoModelForCausalLM.from_pretrained(folder)
    fed = tokenizer.apply_chat_template(
        [{"role": "user", "content": text}],
        add_generation_prompt=True,
        return_tensors="pt",
        return_dict=True,
    )
    made = model.generate(**fed, max_new_tokens=MOST_TOKENS, do_sample=False)
    new = made[0, fed["input_ids"].shape[1] :].tolist()
    return tokenizer.decode(new, skip_special_tokens=True), len(new) < MOST_TOKENS


def by_mlx_lm(folder: str, text: str) -> tuple[str, bool]:
    from mlx_lm import load, stream_generate

    model, tokenizer = load(folder)[:2]
    fed = tokenizer.apply_chat_template(
        [{"role": "user", "content": text}], add_generation_prompt=True
    )
    said = list(stream_generate(model, tokenizer, fed, max_tokens=MOST_TOKENS))
    return "".join(part.text for part in said), said[-1].finish_reason == "stop"


def by_llama_cpp(file: str, text: str) -> tuple[str, bool]:
    llama_cpp: Any = importlib.import_module("xllamacpp")  # it has no types

    params = llama_cpp.CommonParams()
    params.model.path = file
    params.n_ctx, params.n_parallel, params.warmup, params.port = 512, 1, False, 0
    params.use_jinja = True
    server = llama_cpp.Server(params)
    asked = {"messages": [{"role": "user", "content": text}], "max_tokens": MOST_TOKENS}
    said: Any = server.handle_chat_completions(asked | {"temperature": 0})
    (choice,) = said["choices"]
    return choice["message"]["content"], choice["finish_reason"] == "stop"


ASK = {"transformers": by_transformers, "mlx_lm": by_mlx_lm, "llama.cpp": by_llama_cpp}

if __name__ == "__main__":
    ask = ASK[sys.argv[1]]
    answer, has_ended = ask(sys.argv[2], sys.argv[3])
    print(json.dumps({"answer": answer, "has_ended": has_ended}))
