"""The task `prepare`: text becomes a data set, once: a tokenizer, shards of tokens, held-out text.

Owns what is held out, what the tokenizer is trained on, where the data set ends, and that no text
gets into it with its secrets. Text passes through as a stream; no more than SAMPLE_BYTES of it is
held in memory. The shards aren't cut into sequences: training does that, at whatever length.

inputs: tokenizer (optional) · params: see `cycle.run_settings.DataSettings`
outputs: tokenizer, shards, skipped (what was left out), holdout (a sample folder; absent where
nothing is held out)
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path

from tokenizers import Tokenizer

from jupiterd.cycle.base.model_files import FAST_TOKENIZER, has_tokenizer
from jupiterd.cycle.data.instruction_rows import FORM_COUNT, RowForm
from jupiterd.cycle.data.lineage import Sample, text_hash
from jupiterd.cycle.data.split import DEV
from jupiterd.cycle.runs.run_settings import DataSettings
from jupiterd.cycle.training.architectures import MAX_VOCAB
from jupiterd.errors import InvalidSettingError
from jupiterd.path_text import path_of
from jupiterd.protocol.frames import TaskFinished
from jupiterd.workers.data.collect.text_files import PlacedText, TextFiles
from jupiterd.workers.data.collectors.collector import TextExtraction
from jupiterd.workers.data.extract.extraction import Extractor
from jupiterd.workers.data.instruction.conversation_files import (
    PlacedConversation,
    conversations,
    form_below,
)
from jupiterd.workers.data.pack.prepared_split import read_first, split_of, without_secrets
from jupiterd.workers.data.skips import SkipCounts, SkipLog
from jupiterd.workers.data.tables import streamed_text
from jupiterd.workers.link import Task
from jupiterd.workers.progress import Progress, silent
from jupiterd.workers.samples.sample_file import SampleWriter
from jupiterd.workers.tokens.chat_encoding import NEEDS_TEMPLATE, ChatEncoder
from jupiterd.workers.tokens.marks import DocumentMarks, document_marks
from jupiterd.workers.tokens.shards import ShardIndex, ShardWriter
from jupiterd.workers.tokens.tokenizer import (
    copy_tokenizer,
    encode_batch,
    entries_of,
    load_tokenizer,
    save_tokenizer,
    tokenizer_hash,
    train_tokenizer,
)

SAMPLE_BYTES = 16 << 20
"""The tokenizer is trained on the text that comes first, so much of it."""

TEXT_FIELD = "text"
"""Who names another field wants that one, whatever else the rows have."""

_BATCH_DOCUMENTS = 64


def run(task: Task) -> TaskFinished:
    """Do the task that a daemon gave."""
    named = {name: task.params[name] for name in DataSettings.model_fields if name in task.params}
    settings = DataSettings.parse(named)
    counts = prepare(settings, task.inputs.get("tokenizer"), task.output_dir, task.progress)
    names = [
        "tokenizer",
        "shards",
        "skipped",
        *(["holdout"] if counts["holdout_documents"] else []),
    ]
    loss_on = {"loss_on": settings.loss_on} if "counted_tokens" in counts else {}
    return TaskFinished({name: name for name in names}, counts, loss_on)


def prepare(
    settings: DataSettings,
    tokenizer: Path | None,
    output_dir: Path,
    progress: Progress = silent,
    sample_bytes: int = SAMPLE_BYTES,
) -> dict[str, float]:
    """Write the outputs below `output_dir`; return the counts.

    Raises:
        EmptySourceError: there is no text.
        InvalidSettingError: the tokenizer can't be used.
    """
    with SkipLog(output_dir / "skipped") as skips, Extractor() as extractor:
        return _prepared(
            settings, tokenizer, output_dir, progress, SourceReader(skips, extractor, sample_bytes)
        )


def _prepared(
    settings: DataSettings,
    tokenizer: Path | None,
    output_dir: Path,
    progress: Progress,
    reading: "SourceReader",
) -> dict[str, float]:
    removed: Counter[str] = Counter()
    documents = without_secrets(reading.texts(settings), removed)
    sample = read_first(documents, reading.sample_bytes, settings.holdout)
    split = split_of(sample, settings.holdout)
    training = [each for each in sample if not split.takes(each)]
    texts = [each.text for each in training]
    ready = _provide_tokenizer(tokenizer, settings, texts, output_dir / "tokenizer")
    rest = (each for each in documents if not split.takes(each))
    writer = ShardWriter(output_dir / "shards", entries_of(ready))
    encoding = _encoding(reading.form, settings, output_dir / "tokenizer")
    marks = document_marks(output_dir / "tokenizer", ready)
    packing = _Packing(ready, marks, writer, settings.max_tokens, progress, encoding)
    packing.pack(chain(training, rest))
    index = packing.finish(output_dir / "tokenizer", settings.loss_on)
    if encoding is not None:
        _check_held_out(split.held_out.values(), encoding)
    _write_held_out(split.held_out, output_dir / "holdout")
    return {
        "tokens": index.tokens,
        "documents": index.documents,
        "bytes": index.bytes,
        "vocab_size": index.vocab_size,
        "holdout_documents": len(split.held_out),
        "holdout_bytes": split.held_out_bytes,
        "holdout_clusters": len(split.held_out_clusters),
        **({} if encoding is None else {"counted_tokens": index.counted_tokens}),
        f"{FORM_COUNT}{reading.form}": index.documents + len(split.held_out),
        **removed,
        **reading.skips.totals(),
        "skipped_rows": reading.skipped_rows,
    }


class SourceReader:
    """Reads the texts of a data set's source, and knows their form, and what was left out."""

    def __init__(self, skips: SkipCounts, extraction: TextExtraction, sample_bytes: int) -> None:
        self.skips = skips
        self.sample_bytes = sample_bytes
        self.skipped_rows = 0
        self.form = RowForm.TEXT
        self._extraction = extraction

    def texts(self, settings: DataSettings) -> Iterator[PlacedText]:
        """Yield them; raises UsageError where forms are mixed, EmptySourceError without any."""
        if settings.kind == "hugging_face":
            rows = streamed_text.documents(settings, self.skips)
            yield from (PlacedText(text, (str(number),)) for number, text in enumerate(rows))
            self.skipped_rows = self.skips.counts.total()
            return
        if settings.field == TEXT_FIELD:
            self.form = form_below(path_of(settings.path))
        if self.form is not RowForm.TEXT:
            yield from conversations(path_of(settings.path), self.form, self.skips)
            self.skipped_rows = self.skips.counts.total()
            return
        files = TextFiles(path_of(settings.path), settings.field, self._extraction, self.skips)
        for placed in files.documents():
            self.skipped_rows = files.skipped_rows
            yield placed
        self.skipped_rows = files.skipped_rows


def _provide_tokenizer(
    given: Path | None, settings: DataSettings, texts: list[str], folder: Path
) -> Tokenizer:
    if given is None and settings.tokenizer_path:
        given = path_of(settings.tokenizer_path)
        if not given.is_dir() or not has_tokenizer({path.name for path in given.iterdir()}):
            raise InvalidSettingError(
                f"there is no {FAST_TOKENIZER} in {given}, nor a tokenizer in an older form",
                "give it a Hugging Face folder",
            )
    if given is None:
        save_tokenizer(train_tokenizer(texts, settings.vocab_size), folder)
    else:
        copy_tokenizer(given, folder)
    tokenizer = load_tokenizer(folder)  # read back even when just trained: both ways act alike
    if (size := entries_of(tokenizer)) > MAX_VOCAB:
        raise InvalidSettingError(f"a vocabulary of {size:,} is larger than {MAX_VOCAB:,}")
    return tokenizer


def _encoding(form: RowForm, settings: DataSettings, folder: Path) -> ChatEncoder | None:
    """Return what makes tokens of conversations; None: there are none."""
    if form is RowForm.TEXT:
        return None
    encoder = ChatEncoder(folder, answers_alone=settings.loss_on == "answers")
    if form is RowForm.MESSAGES and not encoder.has_template:
        raise InvalidSettingError("the tokenizer has no chat template", NEEDS_TEMPLATE)
    return encoder


class _Packing:
    """Writes documents as tokens until there are enough."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        marks: DocumentMarks,
        writer: ShardWriter,
        max_tokens: int,
        progress: Progress,
        encoding: ChatEncoder | None = None,
    ) -> None:
        self._tokenizer = tokenizer
        self._encoding = encoding
        self._marks = marks
        self._writer = writer
        self._most = max_tokens
        self._progress: Callable[[int, int, str], None] = progress
        self._counts: Counter[str] = Counter()

    def pack(self, documents: Iterator[PlacedText]) -> None:
        while batch := list(islice(documents, _BATCH_DOCUMENTS)):
            self._add_all(batch)
            self._progress(self._counts["tokens"], self._most, "tokens")
            if self._is_full():
                return

    def _add_all(self, batch: list[PlacedText]) -> None:
        if self._encoding is not None:
            for each in batch:
                if isinstance(each, PlacedConversation):
                    self._add_conversation(each, self._encoding)
            return
        texts = [each.text for each in batch]
        for text, ids in zip(texts, encode_batch(self._tokenizer, texts), strict=True):
            self._add(text, self._marks.around(ids))

    def _add_conversation(self, placed: PlacedConversation, encoding: ChatEncoder) -> None:
        """Add one whole; those beyond the most that is wanted are left out."""
        if self._is_full():
            return
        ids, counted = encoding.encode(placed.conversation)
        self._writer.append_masked(ids, counted, text_hash(placed.text))
        self._counts.update(tokens=len(ids), documents=1, bytes=len(placed.text.encode()))

    def _add(self, text: str, ids: list[int]) -> None:
        if self._is_full():
            return
        room = self._most - self._counts["tokens"] if self._most else len(ids)
        self._writer.append(ids[:room], [(text_hash(text), min(room, len(ids)))])
        self._counts.update(tokens=min(room, len(ids)), documents=1, bytes=len(text.encode()))

    def _is_full(self) -> bool:
        return 0 < self._most <= self._counts["tokens"]

    def finish(self, tokenizer_folder: Path, loss_on: str) -> ShardIndex:
        return self._writer.finish(
            seq_len=0,
            tokenizer_hash=tokenizer_hash(tokenizer_folder),
            documents=self._counts["documents"],
            size_bytes=self._counts["bytes"],
            loss_on=loss_on,
        )


def _check_held_out(held_out: Iterable[PlacedText], encoding: ChatEncoder) -> None:
    """Raise InvalidSettingError for a row that can't be scored: now, not once training begins."""
    for placed in held_out:
        if isinstance(placed, PlacedConversation):
            encoding.encode(placed.conversation)


def _write_held_out(held_out: Mapping[str, PlacedText], folder: Path) -> None:
    if not held_out:
        return
    with SampleWriter(folder) as writer:
        for digest, placed in sorted(held_out.items()):
            said = placed.conversation if isinstance(placed, PlacedConversation) else None
            writer.add(
                Sample(
                    id=digest,
                    text=placed.text,
                    messages=tuple(each.to_plain() for each in said.messages) if said else (),
                    first_answer=said.first_answer if said else 0,
                    kind="real",
                    depth=0,
                    parents=(),
                    cluster_id=digest,
                    source_uri="",
                    revision="",
                    license="unknown",
                    collector="prepare@1",
                    fetched_at="",
                    split=DEV,
                )
            )
