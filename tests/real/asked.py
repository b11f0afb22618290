"""Puts a question to a model folder as people do: `python -m tests.real.asked LIBRARY FOLDER TEXT`.

Owns the two libraries' own ways, transformers' and mlx-lm's, both with the folder's chat template
and its own end. Prints JSON: the answer, and whether the model has ended it itself.
"""

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


if __name__ == "__main__":
    ask = {"transformers": by_transformers, "mlx_lm": by_mlx_lm}[sys.argv[1]]
    answer, has_ended = ask(sys.argv[2], sys.argv[3])
    print(json.dumps({"answer": answer, "has_ended": has_ended}))
