"""The task `pack_arm`: the shards that the small students of one arm are trained on.

Owns an arm's text: the real part, which all arms have alike, and generated text up to a share,
which passes the same filters as a round's, and of which nothing is near to real or held-out text.
Doesn't know who wrote it.

inputs: real, yardstick, tokenizer, samples.N (generated; optional), holdout.N
params: language, license_policy, seq_len, synthetic_share, seed, purged
outputs: shards (with arm.json)
"""

import json
from collections.abc import Iterable
from pathlib import Path

from jupiterd.cycle.data.purge import Purge
from jupiterd.protocol.frames import TaskFinished
from jupiterd.workers.data.clean.clean_batch import TextRules, clean
from jupiterd.workers.data.dedup.merge_batches import RoundBatches, unite
from jupiterd.workers.data.pack.pack_shards import PackParams, pack
from jupiterd.workers.link import Task
from jupiterd.workers.samples.sample_file import SampleWriter, read_samples

ARM_FILE = "arm.json"
"""In the folder of the shards: what they were packed of."""


def run(task: Task) -> TaskFinished:
    """Do the task that a daemon gave."""
    scratch = task.scratch_dir / "arm"
    real, written = task.inputs["real"], task.inputs_named("samples")
    generated = _usable(task, written, scratch) if written else []
    params = PackParams(
        vocab_size=0,
        seq_len=int(task.params["seq_len"]),
        synthetic_share=float(task.params["synthetic_share"]),
        seed=int(task.params["seed"]),
        purged=tuple(map(str, task.params.get("purged", ()))),
    )
    counts, reason = pack(
        [real, *generated], task.inputs["tokenizer"], task.output_dir, params, task.progress
    )
    real_bytes = sum(len(sample.text.encode()) for sample in read_samples(real))
    fields = {
        "real_bytes": real_bytes,
        "synthetic_bytes": int(counts["synthetic_bytes"]),
        "synthetic_documents": int(counts["synthetic_documents"]),
        "reason": reason,
    }
    text = json.dumps(fields, indent=2, sort_keys=True) + "\n"
    (task.output_dir / "shards" / ARM_FILE).write_text(text, encoding="utf-8")
    return TaskFinished(
        {"shards": "shards"},
        {
            "arm_synthetic_documents": counts["synthetic_documents"],
            "arm_usable_documents": sum(1 for folder in generated for _ in read_samples(folder)),
            "arm_synthetic_share": synthetic_share_of(task.output_dir / "shards"),
            "arm_tokens": counts["tokens"],
        },
        {"mix_reason": reason},
    )


def synthetic_share_of(shards: Path) -> float:
    """Return the share of an arm's bytes that was generated."""
    fields = json.loads((shards / ARM_FILE).read_text(encoding="utf-8"))
    whole = int(fields["real_bytes"]) + int(fields["synthetic_bytes"])
    return int(fields["synthetic_bytes"]) / max(1, whole)


def _usable(task: Task, written: Iterable[Path], scratch: Path) -> list[Path]:
    """Return a folder with the generated text that a round would keep beside this real text."""
    language = str(task.params["language"])
    rules = TextRules.of_params(task.params)
    scratch.mkdir(parents=True, exist_ok=True)
    clean(list(written), scratch / "cleaned", rules)
    batches = RoundBatches(
        clean=[task.inputs["real"], scratch / "cleaned" / "clean"],
        dropped=[scratch / "cleaned" / "dropped"],
        holdout=[*task.inputs_named("holdout"), task.inputs["yardstick"]],
        purge=Purge(map(str, task.params.get("purged", ()))),
    )
    unite(batches, scratch / "united", language)
    with SampleWriter(scratch / "generated") as writer:
        for sample in read_samples(scratch / "united" / "kept"):
            if sample.kind == "synthetic":
                writer.add(sample)
    return [scratch / "generated"]
