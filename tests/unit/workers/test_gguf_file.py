"""A model as one GGUF file: what llama.cpp computes with it is what transformers computes."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as hf

from jupiterd.errors import UsageError
from jupiterd.gguf_file.architecture import architecture_of
from jupiterd.gguf_file.vocabulary import vocabulary_of
from jupiterd.gguf_file.write import write_gguf
from jupiterd.workers.tokens.tokenizer import (
    CONFIG_FILE,
    TOKENIZER_FILE,
    copy_tokenizer,
    encode_batch,
    load_tokenizer,
    save_tokenizer,
    train_tokenizer,
)
from tests.support.workers.tiny_models import CHAT_TEMPLATE
from tests.unit.workers.tokens.test_brought_tokenizers import TEMPLATE, like_llama

pytest.importorskip("gguf")
pytestmark = pytest.mark.net
ROWS = 384
TEXT = (Path(__file__).parents[3] / "docs" / "gate.md").read_text(encoding="utf-8")
PIECES = ["It  is\n\tthe 12345th na\u00efve caf\u00e9: \u65e5\u672c, don't!\n\n\nEnd", TEXT[:3000]]

DECODER: dict[str, Any] = {
    "vocab_size": ROWS, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 4,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 256,
    "eos_token_id": 0, "bos_token_id": 0, "pad_token_id": 0,
    "rope_parameters": {"rope_type": "default", "rope_theta": 5e4},
}  # fmt: skip
LINEAR = {"rope_type": "linear", "rope_theta": 5e4, "factor": 4.0}
LLAMA_3 = LINEAR | {
    "rope_type": "llama3", "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}  # fmt: skip
GRANITE = {
    "embedding_multiplier": 3.0, "residual_multiplier": 0.7, "logits_scaling": 2.0,
    "attention_multiplier": 0.2,
}  # fmt: skip
MODELS: dict[str, Any] = {
    "llama, linear positions": hf.LlamaConfig(**DECODER | {"rope_parameters": LINEAR}),
    "llama 3's positions": hf.LlamaConfig(**DECODER | {"rope_parameters": LLAMA_3}),
    "llama, tied, biases": hf.LlamaConfig(
        **DECODER, attention_bias=True, mlp_bias=True, tie_word_embeddings=True
    ),
    "mistral": hf.MistralConfig(**DECODER, sliding_window=None),
    "qwen2": hf.Qwen2Config(**DECODER),
    "qwen3, wide heads": hf.Qwen3Config(**DECODER, head_dim=32, tie_word_embeddings=True),
    "smollm3": hf.SmolLM3Config(**DECODER, no_rope_layer_interval=4),
    "olmo2": hf.Olmo2Config(**DECODER),
    "granite": hf.GraniteConfig(**DECODER | GRANITE),
    "gpt2": hf.GPT2Config(vocab_size=ROWS, n_embd=64, n_layer=3, n_head=4, n_positions=256),
}


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tokenizer")
    save_tokenizer(train_tokenizer([TEXT], ROWS), folder)
    return folder


def model_of(config: Any, tokenizer: Path, folder: Path) -> Any:
    """Write a model whose weights 16 bits hold exactly, and large enough for places to matter."""
    torch.manual_seed(3)
    model: Any = hf.AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for weights in model.parameters():
            changed = weights * 5 if weights.ndim > 1 else weights + torch.randn_like(weights) * 0.1
            weights.copy_(changed.half().float())
    copy_tokenizer(tokenizer, folder)
    model.save_pretrained(folder)
    return model


def written(folder: Path) -> Path:
    config = json.loads((folder / "config.json").read_text())
    write_gguf(folder, config, folder / "model.gguf", "mine")
    return folder / "model.gguf"


def served(file: Path, **settings: Any) -> Any:
    """llama.cpp with the file, in this process."""
    llama_cpp = pytest.importorskip("xllamacpp")
    params = llama_cpp.CommonParams()
    params.model.path = str(file)
    params.n_ctx, params.n_parallel, params.warmup, params.port = 256, 1, False, 0
    params.cpuparams.n_threads = 1
    for name, value in settings.items():
        setattr(params, name, value)
    return llama_cpp.Server(params)


def log_chances(server: Any, ids: list[int], wanted: int) -> dict[int, float]:
    """Return the chance of each token after these; `wanted` is drawn: a whole character."""
    asked = {"prompt": ids, "n_predict": 1, "n_probs": ROWS, "logit_bias": [[wanted, 1000.0]]}
    said = server.handle_completions(asked)
    first = said["choices"][0]["logprobs"]["content"][0]
    return {each["id"]: each["logprob"] for each in first["top_logprobs"]}


@pytest.mark.parametrize("name", MODELS)
def test_llama_cpp_computes_what_transformers_computes(name: str, tokenizer: Path, tmp_path: Path):
    model = model_of(MODELS[name], tokenizer, tmp_path / "model")
    ids = encode_batch(load_tokenizer(tokenizer), [TEXT[:200]])[0][:40]
    with torch.inference_mode():
        expected = torch.log_softmax(model(torch.tensor([ids])).logits[0, -1], -1)
    letter = encode_batch(load_tokenizer(tokenizer), ["a"])[0][0]
    found = log_chances(served(written(tmp_path / "model")), ids, letter)
    assert len(found) == ROWS
    furthest = max(abs(value - float(expected[at])) for at, value in found.items())
    spread = float(expected.max() - expected.min())
    print(f"{furthest / spread:.6f} of a spread of {spread:.2f}")
    assert furthest < 0.002 * spread, "llama.cpp keeps what it has read in 16 bits"


def asked(server: Any, path: str, **body: Any) -> Any:
    import urllib.request

    request = urllib.request.Request(
        server.listening_address + path, json.dumps(body).encode(), {"content-type": "text/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read())


def test_llama_cpp_cuts_text_and_asks_as_the_model_s_own_tokenizer(tokenizer: Path, tmp_path: Path):
    for name, given, template in (
        ("bytes", tokenizer, CHAT_TEMPLATE),
        ("pieces", like_llama(tmp_path / "given"), TEMPLATE),
    ):
        folder = tmp_path / name
        model_of(MODELS["qwen2"], given, folder)
        (folder / "chat_template.jinja").write_text(template)
        server = served(written(folder), use_jinja=True)
        for text in PIECES:
            said = asked(server, "/tokenize", content=text, add_special=False, parse_special=False)
            assert said["tokens"] == encode_batch(load_tokenizer(folder), [text])[0], name
            spelt = asked(server, "/detokenize", tokens=said["tokens"])["content"]
            assert spelt.removeprefix(" ") == text, name
        talk = [{"role": "user", "content": "Hi"}]
        tokenizer: Any = hf.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        prompt = tokenizer.apply_chat_template(talk, tokenize=False, add_generation_prompt=True)
        assert asked(server, "/apply-template", messages=talk)["prompt"] == prompt
        begins = asked(server, "/tokenize", content="a", add_special=True)["tokens"][:-1]
        assert begins[:1] == tokenizer("")["input_ids"], name


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"model_type": "phi3"}, "no phi3 model"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 2.0}}, "yarn positions"),
        ({"hidden_act": "gelu"}, "with gelu"),
        ({"rms_norm_eps": None}, "config.json can't be read"),
        ({"model_type": "smollm3", "no_rope_layers": [1, 1, 1, 1]}, "positions are special"),
    ],
)
def test_a_model_that_is_not_known_is_left_to_others(more: dict[str, Any], why: str):
    config = DECODER | {"model_type": "llama", "rms_norm_eps": 1e-6}
    config = {name: value for name, value in config.items() if name != "rope_parameters"}
    assert architecture_of(config | {"rope_theta": 7.0}).fields["rope.freq_base"] == 7.0
    with pytest.raises(UsageError, match=why):
        architecture_of(config | more)


def test_a_tokenizer_that_is_not_known_is_left_to_others(tokenizer: Path):
    names = (TOKENIZER_FILE, CONFIG_FILE)
    said = {name: json.loads((tokenizer / name).read_text()) for name in names}
    known = vocabulary_of(said, "", ROWS + 2)
    assert (known.split, known.adds_bos) == ("gpt-2", False)
    assert known.ids == {"bos": 0, "pad": 0, "eos": 0}
    assert known.tokens[ROWS:] == [f"[PAD{ROWS}]", f"[PAD{ROWS + 1}]"]
    plain = said[TOKENIZER_FILE]
    for more, why in (
        ({"pre_tokenizer": plain["pre_tokenizer"] | {"add_prefix_space": True}}, "splits text so"),
        ({"model": {"type": "Unigram", "vocab": [["a", 0.0]]}}, "of the kind Unigram"),
    ):
        with pytest.raises(UsageError, match=why):
            vocabulary_of(said | {TOKENIZER_FILE: plain | more}, "", ROWS)
    with pytest.raises(UsageError, match="384 tokens, and the model 300"):
        vocabulary_of(said, "", 300)
