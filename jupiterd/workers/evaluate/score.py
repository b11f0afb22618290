"""Scoring held-out text under candidate, last student, generator and baselines.

Owns putting them side by side over the same bytes. Doesn't decide anything (`judge` does). It is
most of the task `evaluate` (`answers.evaluation`), of which it reads these:

inputs: model, incumbent, generator (these two are optional: the byte model takes the place of one
that is absent; where they are the same model it is scored once), base (the model that the cycle
began with, where one was brought), kept, holdout.N
params: piece, pieces, min_document_bytes, max_document_bytes, max_cluster_documents, batch, purged,
parts, language, completions, seed, engine (torch or mlx, as the node has it), device (of torch),
may_be_empty (where no verdict is wanted: nothing need be held out), general_text (which is scored
beside for a base), has_gaps (false: none is filled)
outputs: scores (scores.jsonl, cloze.jsonl, and where completions were asked for sanity.json and
completions.jsonl)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from pathlib import Path

from jupiterd.cycle.data.purge import Purge
from jupiterd.cycle.data.split import GATE, held_out_part
from jupiterd.cycle.gate.sanity import Sanity
from jupiterd.cycle.gate.scores import GENERAL, ClozeScore, DocumentScore
from jupiterd.cycle.generation.cloze import ClozeItem, HeldOutText, is_right, make_items
from jupiterd.cycle.generation.completions import Completion
from jupiterd.errors import EmptySourceError
from jupiterd.protocol.frames import TaskFinished
from jupiterd.workers.evaluate.documents import ScoredDocument, ScoringLimits, choose_documents
from jupiterd.workers.evaluate.general_text import general_documents
from jupiterd.workers.evaluate.saved_nats import FOLDER, NOTHING_SAVED, SavedNats, computed_on
from jupiterd.workers.evaluate.score_file import (
    write_completions,
    write_sanity,
    write_scores,
)
from jupiterd.workers.evaluate.score_table import Means, ScoreTable, tabulate
from jupiterd.workers.evaluate.scorers import CPU, TORCH
from jupiterd.workers.evaluate.trial import WritingTrial, texts_to_write, try_out
from jupiterd.workers.link import Task
from jupiterd.workers.memory_room import halved
from jupiterd.workers.progress import Progress, silent
from jupiterd.workers.samples.sample_file import read_all

DEFAULT_BATCH_WINDOWS = 8
"""Of an engine that doesn't count tokens instead; half as many where memory ran out, and so on."""


@dataclass(frozen=True)
class ScoreInputs:
    """The folders that a piece of evaluation reads."""

    model: Path
    incumbent: Path | None
    retained: Sequence[Path]
    holdout: Sequence[Path]
    purge: Purge = field(default_factory=Purge)
    parts: frozenset[str] = frozenset({GATE})
    """The parts of the holdout whose text is scored."""
    generator: Path | None = None
    base: Path | None = None
    """The model that the cycle began with."""

    @property
    def models(self) -> tuple[Path, ...]:
        """The different models, the candidate first."""
        others = (self.incumbent, self.generator, self.base)
        return tuple(dict.fromkeys((self.model, *(path for path in others if path is not None))))


@dataclass(frozen=True)
class ScoreParams:
    """Which documents this piece scores, and how many windows at a time."""

    piece: int
    pieces: int
    limits: ScoringLimits
    batch_windows: int = DEFAULT_BATCH_WINDOWS
    language: str = ""
    """Of the domain; gaps are made in its way, and none where it is empty."""
    completions: int = 0
    """So many texts the candidate is to write in this piece, to see whether it works at all."""
    seed: int = 0
    engine: str = TORCH
    may_be_empty: bool = False
    """Where no verdict is wanted there need be no document for the gate."""
    general_text: str = ""
    """Name@version of the general text that is scored beside; empty: none."""
    has_gaps: bool = True
    """Whether gaps in the text are filled, where there is a language."""
    device: str = CPU
    """Of torch."""


@dataclass(frozen=True)
class Scores:
    """What came of a piece."""

    documents: Sequence[DocumentScore]
    cloze: Sequence[ClozeScore]
    sanity: Sanity | None
    """None where this piece doesn't try the candidate out."""
    completions: Sequence[Completion] = ()
    texts: int = 0
    """Scored under a model, or written: so many steps the piece had, as it told meanwhile."""


def scored(task: Task, progress: Progress) -> TaskFinished:
    """Do the task that a daemon gave, and tell that progress of it."""
    limits = ScoringLimits(
        int(task.params["min_document_bytes"]),
        int(task.params["max_document_bytes"]),
        int(task.params["max_cluster_documents"]),
    )
    params = ScoreParams(
        int(task.params["piece"]),
        int(task.params["pieces"]),
        limits,
        halved(int(task.params.get("batch", DEFAULT_BATCH_WINDOWS)), task.params, "text"),
        str(task.params.get("language", "")),
        int(task.params.get("completions", 0)),
        int(task.params.get("seed", 0)),
        str(task.params.get("engine", TORCH)),
        bool(task.params.get("may_be_empty", False)),
        str(task.params.get("general_text", "")),
        bool(task.params.get("has_gaps", True)),
        str(task.params.get("device", CPU)),
    )
    inputs = ScoreInputs(
        task.inputs["model"],
        task.inputs.get("incumbent"),
        task.inputs_named("kept"),
        task.inputs_named("holdout"),
        Purge(map(str, task.params.get("purged", ()))),
        frozenset(map(str, task.params.get("parts", (GATE,)))),
        task.inputs.get("generator"),
        task.inputs.get("base"),
    )
    saved_nats = SavedNats(
        task.scratch_dir.parent / FOLDER, computed_on(params.engine, params.device)
    )
    scores = score(inputs, params, progress, saved_nats)
    write_scores(task.output_dir / "scores", scores.documents, scores.cloze)
    if scores.sanity is not None:
        write_sanity(task.output_dir / "scores", scores.sanity)
        write_completions(task.output_dir / "scores", scores.completions)
    held_out = [row for row in scores.documents if row.part != GENERAL]
    counts: dict[str, float] = {
        "documents": len(held_out),
        "scores": len(held_out) * len(inputs.models),
        "bytes": sum(row.bytes for row in held_out),
        "clusters": len({row.cluster for row in held_out}),
        "gaps": len(scores.cloze),
        "texts": scores.texts,
    }
    return TaskFinished({"scores": "scores"}, counts)


def score(
    inputs: ScoreInputs,
    params: ScoreParams,
    progress: Progress = silent,
    saved_nats: SavedNats = NOTHING_SAVED,
) -> Scores:
    """Return the scores of this piece's documents; every model's nats are over the same bytes.

    Raises:
        EmptySourceError: this piece has no document for the gate, which other parts of the holdout
            may lack, or there is no training text to count.
    """
    held_out, items = _chosen(inputs, params)
    if not held_out:
        return Scores([], [], None)
    documents = [*held_out, *general_documents(params.general_text)[params.piece :: params.pieces]]
    texts = [document.text for document in documents]
    texts += [text for item in items for text in item.filled()]
    trial = WritingTrial(
        params.completions, params.seed, params.language, params.engine, params.device
    )
    to_write = texts_to_write(inputs.model, inputs.generator, trial)
    steps = _Steps(progress, len(documents), len(texts), len(inputs.models), to_write)
    steps.begin()
    training = _training_text(inputs)
    means = Means(params.batch_windows, params.engine, params.device, saved_nats)
    table = tabulate(texts, inputs.models, training, means, steps.of)
    roles = [table.nats[path] for path in (inputs.model, inputs.incumbent, inputs.generator)]
    base = None if inputs.base is None else table.nats[inputs.base]
    rows = [
        replace(
            _document_score(place, each, table, roles),
            base_nats=None if base is None else base[place],
        )
        for place, each in enumerate(documents)
    ]
    cloze = _cloze_scores(items, texts[len(documents) :], len(documents), roles)
    beginnings = texts[: len(held_out)]
    if not trial.completions:
        return Scores(rows, cloze, None, texts=steps.total)
    tried = try_out(inputs.model, inputs.generator, beginnings, trial, steps.written)
    steps.end()
    return Scores(rows, cloze, tried.sanity, tried.completions, steps.total)


def _document_score(
    place: int, document: ScoredDocument, table: ScoreTable, roles: Sequence[Sequence[float]]
) -> DocumentScore:
    candidate, incumbent, generator = (column[place] for column in roles)
    return DocumentScore(
        id=document.id,
        cluster=document.cluster,
        stratum=document.stratum,
        bytes=document.size_bytes,
        tokens=table.tokens[place],
        candidate_nats=candidate,
        incumbent_nats=incumbent,
        generator_nats=generator,
        byte_nats=table.nats[None][place],
        unigram_nats=table.unigram_nats[place],
        part=document.part,
    )


def _cloze_scores(
    items: Sequence[ClozeItem],
    filled: Sequence[str],
    first: int,
    roles: Sequence[Sequence[float]],
) -> list[ClozeScore]:
    """Return who fills each gap rightly; `first` is the place of the first filled text."""
    sizes = [len(text.encode()) for text in filled]
    ends = list(accumulate((len(item.options) for item in items), initial=0))
    return [
        ClozeScore(
            item.id,
            item.cluster,
            str(item.kind),
            *(is_right(nats[first + start : first + end], sizes[start:end]) for nats in roles),
        )
        for item, (start, end) in zip(items, pairwise(ends), strict=True)
    ]


def _chosen(
    inputs: ScoreInputs, params: ScoreParams
) -> tuple[list[ScoredDocument], list[ClozeItem]]:
    """Return this piece's documents and the gaps in them; words to offer come from all pieces."""
    held_out = inputs.purge.left(read_all(inputs.holdout))
    shown = [sample for sample in held_out if held_out_part(sample.split) in inputs.parts]
    everything = [
        document
        for part in sorted(inputs.parts)
        for document in choose_documents(
            (each for each in shown if held_out_part(each.split) == part), params.limits, 0, 1
        )
    ]
    # Each part is cut by itself: another part must not change who scores what.
    documents = [
        document
        for part in sorted(inputs.parts)
        for document in _of(everything, part)[params.piece :: params.pieces]
    ]
    if not documents and GATE in inputs.parts and not params.may_be_empty:
        raise EmptySourceError(f"piece {params.piece} of the evaluation has no held-out document")
    if not params.language or not params.has_gaps:
        return documents, []
    texts = [
        HeldOutText(each.id, each.cluster, each.text) for each in everything if each.part == GATE
    ]
    mine = {document.id for document in documents}
    return documents, [item for item in make_items(texts, params.language) if item.document in mine]


def _of(documents: Sequence[ScoredDocument], part: str) -> list[ScoredDocument]:
    return [document for document in documents if document.part == part]


def _training_text(inputs: ScoreInputs) -> list[str]:
    retained = inputs.purge.left(read_all(inputs.retained))
    training = [sample.text for sample in retained if sample.kind == "real"]
    if not training:
        raise EmptySourceError("there is no real training text to count the baselines on")
    return training


@dataclass(frozen=True)
class _Steps:
    """Makes one progress out of that of several models, which each pass over all texts.

    A text that is written afterwards counts as one that is scored: it takes about as long.
    """

    progress: Progress
    documents: int
    texts: int
    models: int
    to_write: int

    def begin(self) -> None:
        self._report(0)

    def of(self, model: int) -> Callable[[int], None]:
        before = model * self.documents
        return lambda done: self._report(before + done * self.documents // self.texts)

    def written(self, texts: int) -> None:
        self._report(self.models * self.documents + texts)

    def end(self) -> None:
        """Tell that all is done: of few documents fewer texts than planned can be begun."""
        self._report(self.total)

    @property
    def total(self) -> int:
        """Return how many there are in all."""
        return self.models * self.documents + self.to_write

    def _report(self, done: int) -> None:
        self.progress(done, self.total, "texts")
