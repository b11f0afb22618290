"""Bits per byte of models of this machine on held-out text: a round's gate's, or a training run's.

Owns which round's text that is, and the document and the table. Scores as verdicts do; a machine
keeps what it has scored of a model of the cluster, for verdicts too.
"""

import json
import math
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from blake3 import blake3

from jupiterd.ctl.model.domain_questions import own_lines
from jupiterd.ctl.model.eval_worker import OnProgress, written_by
from jupiterd.ctl.model.evaluated_model import FETCHING_S, EvaluatedModel
from jupiterd.ctl.model.evaluation_cache import EvaluationCache
from jupiterd.ctl.model.grading_rules import SCORING, rules
from jupiterd.ctl.model.harness_lines import estimate_document, estimate_text, shown_by
from jupiterd.ctl.model.judged_text import judged_on, scored_text
from jupiterd.cycle.gate.scores import LN2
from jupiterd.cycle.questions.estimate import Shares, difference, estimated
from jupiterd.errors import NotFoundError
from jupiterd.formats import plain, table
from jupiterd.store.sample_lookup import stored_samples

TASK = "score_texts"


RUN = "run"
"""The kind of a model that a training run has made."""


@dataclass(frozen=True)
class HeldOutText:
    """The documents that a round was judged by, or that a training run didn't learn from."""

    round: str
    """Its name, or that of the run's model."""
    sizes_bytes: Sequence[int]
    clusters: Sequence[str]
    """What each document is of: those of one err together."""
    texts: Sequence[str]

    def shares(self, nats: Sequence[float]) -> Shares:
        """Return what each document adds to the bits per byte; those of a cluster err together."""
        bits = [each / LN2 for each in nats]
        return Shares(bits, [float(each) for each in self.sizes_bytes], self.clusters)


def held_out_text(state_dir: Path, models: Sequence[EvaluatedModel]) -> HeldOutText:
    """Return the held-out text of the first of these that has any.

    Else it is that of the newest round that was judged, or of the newest training run.

    Raises:
        NotFoundError: there is none yet, or nobody in reach has it.
    """
    from jupiterd.ctl.calls import ask_over_grpc

    rows: Sequence[Mapping[str, Any]] = ask_over_grpc(state_dir, "models")["models"]
    judged = [row for row in rows if row["verdict"]]
    having = [*judged, *(row for row in rows if row["kind"] == RUN)]
    own = [row for model in models for row in having if row["id"] == model.artifact]
    if not having:
        raise NotFoundError(
            "nothing was trained yet, so there is no held-out text to score",
            "--tasks asks questions of yours, or with own those of the domain",
        )
    chosen = (own or having)[0]
    return (_of_verdict if chosen["verdict"] else _of_run)(state_dir, chosen)


def _of_verdict(state_dir: Path, row: Mapping[str, Any]) -> HeldOutText:
    from jupiterd.ctl.calls import ask_over_grpc

    name = str(row["name"])
    found = ask_over_grpc(state_dir, f"held_out/{name}", FETCHING_S)["held_out"]
    scores, _ = judged_on(Path(found["verdict"]))
    places = [Path(each) for each in found["texts"]]
    texts = [scored_text(places, score) for score in scores]
    sizes, clusters = [each.bytes for each in scores], [each.cluster for each in scores]
    return HeldOutText(name, sizes, clusters, texts)


def _of_run(state_dir: Path, row: Mapping[str, Any]) -> HeldOutText:
    from jupiterd.ctl.calls import ask_over_grpc

    name = str(row["name"])
    found = ask_over_grpc(state_dir, f"run_held_out/{row['id']}", FETCHING_S)["held_out"]
    samples = [each for at in found["texts"] for each in stored_samples(Path(at)) if each.text]
    if any(each.messages for each in samples):
        raise NotFoundError(
            f"{name} was trained on conversations, of which no bits per byte are told",
            "--tasks asks questions of yours",
        )
    sizes = [len(each.text.encode("utf-8", "surrogatepass")) for each in samples]
    clusters = [each.cluster_id for each in samples]
    return HeldOutText(name, sizes, clusters, [each.text for each in samples])


def nats_of(
    model: EvaluatedModel, text: HeldOutText, device: str, state_dir: Path, told: OnProgress
) -> list[float]:
    """Return the nats of each document under a model; what was computed here before isn't again.

    Raises:
        JupiterError: the worker can't load the model, or ends without a result.
    """
    if model.artifact:  # the worker has what verdicts have computed of it, too
        return _computed(model, text, device, state_dir, told)
    cache, task = EvaluationCache(state_dir), _task(text)
    content = model.content
    known = _read(cache.found_text(content, task), len(text.texts))
    if known is None:
        known = _computed(model, text, device, state_dir, told)
        if all(map(math.isfinite, known)):
            cache.keep_text(content, task, json.dumps(known))
    return known


def _task(text: HeldOutText) -> str:
    """Return what decides the nats beside the model: the text, and how it is scored."""
    digest = blake3(json.dumps(list(text.texts)).encode()).hexdigest()
    return f"{TASK} {rules(SCORING)} {digest}"


def _read(kept: str | None, count: int) -> list[float] | None:
    with suppress(ValueError, TypeError):
        nats = [float(each) for each in json.loads(kept or "")]
        return nats if len(nats) == count else None
    return None


def _computed(
    model: EvaluatedModel, text: HeldOutText, device: str, state_dir: Path, told: OnProgress
) -> list[float]:
    scratch = state_dir / "scratch"
    params = {
        "engine": "torch" if find_spec("torch") else "mlx",
        "device": device,
        "saved": str(scratch / "scores") if scratch.is_dir() else "",
    }
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(list(text.texts), file)
        file.flush()
        inputs = {"model": model.folder, "texts": Path(file.name)}
        return json.loads(written_by(TASK, params, inputs, "nats/nats.json", told))


def held_out_document(
    text: HeldOutText, models: Sequence[EvaluatedModel], nats: Sequence[Sequence[float]]
) -> dict[str, Any]:
    """Return the bits per byte of one model, or of two beside each other."""
    shares = [text.shares(each) for each in nats]
    return {
        "kind": "held-out",
        "round": text.round,
        "documents": len(text.texts),
        "bytes": sum(text.sizes_bytes),
        "models": [
            {"model": model.name, "id": model.artifact or None,
             "bits_per_byte": estimate_document(estimated(each))}
            for model, each in zip(models, shares, strict=True)
        ],
        "difference": estimate_document(difference(*shares)) if len(shares) == 2 else None,
    }  # fmt: skip


def held_out_lines(document: Mapping[str, Any]) -> list[str]:
    """Return a table with a row for each model, what two differ by, and their own questions."""
    own = document["questions"]
    return [*_text_lines(document), *([] if own is None else ["", *own_lines(own)])]


def _text_lines(document: Mapping[str, Any]) -> list[str]:
    rows = [[each["model"], estimate_text(each["bits_per_byte"])] for each in document["models"]]
    about = f"held-out text of {plain(document['round'])}: {document['documents']} documents"
    lines = [about, *table(["model", "bits per byte"], rows)]
    found = document["difference"]
    if found is None:
        return lines
    first, second = (plain(each["model"]) for each in document["models"])
    shown = shown_by(found, is_higher_better=False)
    return [*lines, f"{first} beside {second}: {estimate_text(found, '+')}, {shown}"]
