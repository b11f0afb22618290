"""The files that follow from a comparison: a page for people, and tables for commands.

Owns their form. Everything in them comes from what was compared, and from the libraries' versions.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from importlib.metadata import version
from textwrap import shorten
from typing import TYPE_CHECKING

from tests.bench.models.cases import NAMED
from tests.bench.models.results import MOST_LOGIT_SHARE, MOST_LOSS_NATS, STEPS, Compared

MOST_CHARACTERS = 70
"""Of a reason in one line of a refusal."""

if TYPE_CHECKING:
    from tests.bench.models.torch_sweep import Tried


def known_module(tried: "Sequence[Tried]", tied: Collection[str]) -> str:
    """Return the module that says which architectures torch can train."""
    trained = [each.architecture for each in tried if not each.error and not each.sees_ahead]
    ahead = [each.architecture for each in tried if each.sees_ahead]
    rest = [each.architecture for each in tried if each.error]
    parts = [
        f'''"""The causal language models of transformers {version("transformers")}, tried tiny.

Written by `python -m tests.bench.models torch`; a test compares. Owns data alone.
"""

from typing import Final
''',
        _set("TRAINED", trained, "Made from their configuration and trained on torch."),
        _set(
            "SEES_AHEAD", ahead, "Their tokens see those behind them: nothing is left to predict."
        ),
        _set("UNTRIED", rest, "No tiny one could be made; transformers may make large ones."),
        _set("TIED_BY_DEFAULT", tied, "Tie the output layer where a configuration doesn't say so."),
    ]
    return "\n".join(parts)


def proven_module(found: Sequence[Compared]) -> str:
    """Return the module that says what MLX computes as torch does."""
    proven, left_out = proven_traits(found), left_out_reasons(found)
    mlx_lm, transformers = version("mlx-lm"), version("transformers")
    lines = [line for name in sorted(proven) for line in _entry(name, proven[name])]
    reasons = [
        f"    {_quoted(name)}: {_quoted(shorten(left_out[name], MOST_CHARACTERS))},"
        for name in sorted(left_out)
    ]
    return "\n".join([
        f'''"""What mlx-lm {mlx_lm} computes as transformers {transformers} does.

Written by `python -m tests.bench.models mlx`; a test compares. Owns data alone. The words are those
of `model_traits`.
"""

from collections.abc import Mapping
from typing import Final

PROVEN: Final[Mapping[str, frozenset[str]]] = {{''',
        *lines,
        "}",
        '"""Architecture -> what its models may ask for."""',
        "",
        "LEFT_OUT: Final[Mapping[str, str]] = {",
        *reasons,
        "}",
        '"""Architecture -> the figure or the error that failed."""',
        "",
    ])  # fmt: skip


def proven_traits(found: Iterable[Compared]) -> dict[str, frozenset[str]]:
    """Return what is proven of each architecture whose plain model is alike on both engines."""
    proven: dict[str, frozenset[str]] = {}
    for each in found:
        kind = each.architecture
        if each.is_alike and (kind in proven or not each.variant):
            proven[kind] = proven.get(kind, frozenset()) | each.traits
    return proven


def left_out_reasons(found: Iterable[Compared]) -> dict[str, str]:
    """Return why architectures aren't trained on MLX."""
    return {e.architecture: e.why for e in found if not e.variant and not e.is_alike}


def page(found: Sequence[Compared]) -> str:
    """Return docs/models.md."""
    proven, left_out = proven_traits(found), left_out_reasons(found)
    rows = [_row(name, found) for name in _in_order(proven)]
    others = [f"| {name} | {_plain(left_out[name])} |" for name in _in_order(left_out)]
    variants = [
        f"| {each.architecture} | {each.variant} | {_plain(each.why)} |"
        for each in found
        if each.variant and not each.is_alike and each.architecture in proven
    ]
    return "\n".join([
        *_HEAD.format(
            transformers=version("transformers"), mlx_lm=version("mlx-lm"),
            logits=f"{MOST_LOGIT_SHARE:g}", losses=f"{MOST_LOSS_NATS:g}", steps=STEPS,
        ).splitlines(),
        "",
        "| architecture | logits | losses | also with |",
        "|---|---|---|---|",
        *rows,
        "",
        "## Not on MLX",
        "",
        "These are trained on torch alone; beside each stands the figure or the error that failed.",
        "So are models of experts (Mixtral, Qwen3-MoE and others): mlx-lm holds those in other",
        "pieces than the files do. A refusal names the nearest that MLX trains.",
        "",
        "| architecture | why |",
        "|---|---|",
        *others,
        "",
        "These variants of architectures above aren't trained on MLX either. Windows hinder only",
        "sequences that are longer than they are.",
        "",
        "| architecture | with | why |",
        "|---|---|---|",
        *variants,
        "",
    ])  # fmt: skip


_HEAD = """# Models

<!-- Written by `make models-table`; a test compares it with what the engines compute. -->

Training begins with weights that are drawn, or with a model that others have made: `train start
--model` and `cycle start --init` take a Hugging Face folder or the id of a model on the hub.

- **torch** trains every causal language model of transformers {transformers} that can be made from
  its `config.json`. Weights are read as `from_pretrained` reads them: one file or several, fp32,
  fp16 or bf16, with the names that the hub's files have.
- **MLX** trains those of mlx-lm {mlx_lm} that compute what transformers computes. Tiny random
  models of each architecture were computed by both: logits differ by at most {logits} of their
  spread, and the losses of {steps} training steps by at most {losses} nats. What passed is below;
  it trains on either engine, in gangs, and in islands of both.

Checkpoints are ordinary Hugging Face folders: transformers and mlx-lm read them. LoRA adapters,
weights that are quantized (but for [mlx-lm's](#an-adapter-instead-of-all-weights)), pickled weights
(`pytorch_model.bin`) and models with code of their own aren't read; the command says so before
anything is fetched or copied. Nor are weights of another model than their `config.json`: the
headers of the files are compared with it, name by name and shape by shape for llama, mistral,
qwen2, qwen3, smollm3, granite, gemma, gemma2, gpt2 and gpt_neox, by embedding and number of layers
for others, which are compared as a whole where they are loaded.

## Models of the hub

`train start --model`, `cycle start --init` and `--generator` take `ORG/NAME`, `ORG/NAME@REVISION`
(a branch, a tag, a commit) or the address of a model's page. A folder of that name on this machine
comes first.

1. The command asks the hub for the model's commit, its list of files, and `config.json`: a few KB.
   What can't be trained is refused now: an adapter, GGUF or pickles alone, quantized weights, an
   architecture that nobody knows, a missing file. A hub that is asked too often (HTTP 429) is asked
   again when it says so, for two minutes at the most.
2. The daemon makes all the checks of the command: does the model fit the memory (a generator with a
   text that it writes: that of one machine), is anything else running. Then disks are looked at.
   `--dry-run` ends here, and `cycle plan` predicts from the configuration alone.
3. The weights are fetched, by the machine on which you type, with a line that says how far it is
   (`jupiterctl status`, `events` and the dashboard tell it to others). A fetch that was ended goes
   on where it was once the command is given again, and each large file is compared with the sha256
   that the hub gives. The other machines have the model from the daemon.

Everything else is as the library of the hub has it: its cache (`HF_HOME`, `HF_HUB_CACHE`), tokens
(`hf auth login`, `HF_TOKEN`), mirrors (`HF_ENDPOINT`), and `HF_HUB_OFFLINE=1`, with which only what
is in the cache is used. Without a way to the hub a model that is whole in the cache will do.
Variables are read where you type, not by the daemon.

## Tokenizer, marks and template

A model keeps the tokenizer that it came with: the ids of another one mean other things to it.

- Any tokenizer that transformers loads will do: `tokenizer.json`, `vocab.json` with `merges.txt`,
  SentencePiece (`tokenizer.model`). One without a `tokenizer.json` gets one where the model comes
  in; its own files stay beside it. A SentencePiece model whose configuration names another class of
  tokenizer is refused: it would be cut wrongly without a word.
- A document ends with the model's own end token: `eos_token` of `tokenizer_config.json`, else
  `eos_token_id` of `generation_config.json` or `config.json`, else `<|endoftext|>`. Where the
  tokenizer puts a token before each text, such as `<s>` or `<|begin_of_text|>`, documents begin
  with it, and the first token of a text is scored behind it.
- Text for weights that were brought is cut by their tokenizer. A data set that another one has cut
  is refused by the command and by `--dry-run`: `jupiterctl data prepare TEXT --tokenizer FOLDER`
  cuts it anew. Two are the same where they cut alike, begin and end
  documents alike, and have one template.
- So is a tokenizer with more tokens than the weights know, and one that has no token that ends a
  text.
- Checkpoints and exports have the base's chat template, its `generation_config.json`, its added
  tokens, and the ids of its special tokens. A student of a chat model is asked by its template.

## An adapter instead of all weights

`train start --lora` trains two small matrices beside each large one (LoRA), and leaves the model as
it is:

```sh
jupiterctl train start --data ./texts --model HuggingFaceTB/SmolLM2-135M-Instruct --lora --wait
jupiterctl train start --data ./texts --model ./my-model --lora rank=32,layers=8,targets=attention
```

`lora: rank=16` in a machine's `jupiter.yaml` does so in all that is started there with given
weights, cycles with `--init` as well, unless the command or the domain says another thing;
`--lora off` trains all weights. The plan names the machine whose setting it is.

| part | what it says | unless it is said |
|---|---|---|
| rank | columns of the small matrices | 16 |
| alpha | their product counts alpha / rank times | twice the rank |
| form | `lora`, or `rslora`: alpha / root of the rank | lora |
| layers | how many of the last layers get one; `all`; or which, from 0 on: `0-7+12-12` | all |
| targets | `attention`, `mlp`, `all`, modules: `q_proj+v_proj`, or paths: `mlp.c_proj` | all |
| dropout | the share of a matrix's inputs that the adapter doesn't see, others at each step | 0 |
| `dora` alone | lengths of matrices' rows are learned apart from their directions (DoRA) | not |
| quantize | `4bit`, `8bit` or `none`, as `--quantize` says it | none |

With `--quantize 4bit` (or `8bit`) the matrices in the model's layers are kept in as many bits
while an adapter learns beside them (QLoRA): a model of 8 billion parameters with rank 16 and
sequences of 1,024 tokens is planned into what macOS lets the GPU of a Mac with 16 GB use. Give
the whole model: it is quantized while it is read, one matrix after another. torch does it by
bitsandbytes, which each machine needs then (`pip install 'jupiterd[quantized]'`): NF4 in 4 bits,
int8 with a scale for each row in 8. What is rounded away counts most in small models: SmolLM2-135M
loses 0.2 nats a token in NF4 before it learns, and 0.01 in 8 bits. MLX quantizes differently, so
islands of both engines are refused, and a run keeps the engine that it began on. `quantize: 4bit`
in a machine's `jupiter.yaml` is the default for all that is started there with `--lora`. `model
export --merge` adds the adapter to the whole model, not to the quantized one. `--dry-run` says what
would be taken of the memory, and of what.

A folder that `mlx_lm.convert -q` wrote (affine, 4 or 8 bits) is trained beside as it is, on MLX and
without `--quantize`. It is scored and answers on MLX, too; for torch, `--merge` and cycles begin
with the whole model. GPTQ, AWQ, bitsandbytes and other forms are refused by name.

Which inputs a dropout leaves out follows from the seed, from where a sequence stands in the data's
order and from the matrix. So a step that is taken again after a machine was lost leaves out the
same ones, whatever machines, micro batches and engines it falls to; scores leave out nothing. With
DoRA a step keeps what comes out of each adapted matrix, which the plan counts, and takes longer.

Checkpoints are folders that the package peft reads. The base is kept beside them in the store:
chat, scores and `model eval` put both together. `model export` writes the adapter alone (`--format
hf` for peft, `mlx` for mlx-lm's `--adapter-path`), or with `--merge` one whole model in any format.
A cycle's rounds train one with `cycle start --init MODEL --lora` ([how](cycle.md#with-an-adapter)).

The folder of an adapter that peft or mlx-lm wrote is a model, too, for `model chat`, `model
eval`, `model serve` and `model export`: `jupiterctl model chat ./their-adapter`. Its base is
the folder that it names, or a model of the hub that is on this disk, or one of the cluster by
its id or name; else `--base FOLDER` names it. One that was exported says in `jupiter.json` beside
it which base it is for: its id, by which the cluster's store has it wherever it came from, and a
hash of its weights. Another base of equal shapes is refused by that hash, in training too; what
peft and mlx-lm write has none, and its shapes are compared. `model export ./their-adapter --merge
--format gguf --to ./gguf` makes one file of both.

Training can begin with an adapter that peft or mlx-lm wrote. `--model` may name its folder alone
where the base that it names is a folder here, a model of the cluster or of the hub; else `--model`
names the base:

```sh
jupiterctl train start --data ./texts --model ./their-adapter --wait
jupiterctl train start --data ./texts --model ./my-model --adapter ./their-adapter --wait
```

Which modules it has, and its rank, is told by its tensors, so `target_modules` may be a list, a
pattern or `all-linear`. It must have one rank and one alpha for all, and the same modules in each
of its layers; both kinds of scale (`use_rslora`) are taken, DoRA (`use_dora`, or mlx-lm's
`fine_tune_type`) too, and training goes on with its dropout. Refused by name, before anything is
copied: biases, `modules_to_save`, several ranks or alphas, initial values that change the base
(PiSSA and its kin), pickles, and an adapter whose shapes are those of another base. Of an
adapter that was exported, other weights are refused by their hash, before training starts and by a
dry run.

## GGUF

`model export --format gguf` writes the file for llama.cpp and Ollama itself: matrices in 16 bits,
the tokenizer with the kinds of its tokens, the marks, the chat template. It knows llama, mistral,
qwen2, qwen3, smollm3, olmo2, granite and gpt2, with tokenizers of bytes that split text as those of
GPT-2, Llama 3, Qwen or SmolLM do, and SentencePiece's of merges. What it doesn't know is left to
llama.cpp's `convert_hf_to_gguf.py`, which `--converter` names.

## On both engines"""


def _row(name: str, found: Sequence[Compared]) -> str:
    alike = [each for each in found if each.architecture == name and each.is_alike]
    logits, losses = max(e.logits for e in alike), max(e.losses for e in alike)
    variants = [each.variant for each in alike if each.variant]
    return f"| {name} | {_rounded_up(logits)} | {_rounded_up(losses)} | {', '.join(variants)} |"


def _rounded_up(value: float) -> str:
    """Return the next power of ten, with which a figure of another machine agrees, too."""
    power = next((p for p in range(-8, 1) if value <= 10.0**p), 1)
    return f"< 1e{power}" if power < 0 else f"{value:.1f}"


def _in_order(names: Mapping[str, object]) -> list[str]:
    return [n for n in NAMED if n in names] + sorted(set(names) - set(NAMED))


def _plain(text: str) -> str:
    return text.replace("|", "/")


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _entry(name: str, words: Iterable[str]) -> list[str]:
    inner = [f"            {_quoted(word)}," for word in sorted(words)]
    return [f"    {_quoted(name)}: frozenset(", "        {", *inner, "        }", "    ),"]


def _set(name: str, members: Collection[str], words: str) -> str:
    lines = [f"{name}: Final = frozenset(", "    {"]
    lines += [f"        {_quoted(member)}," for member in sorted(members)]
    return "\n".join([*lines, "    }", ")", f'"""{words}"""', ""])
