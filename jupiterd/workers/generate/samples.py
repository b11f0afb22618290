"""The task `generate`: the generator in force makes new samples of real ones.

Owns the way from an item's documents to its samples, and what is counted. Where the generator is
lost on the way, what it answered before counts, and the summary says what is missing. Each sample
names the real one that it is grounded in. Doesn't judge them beyond what their template asks for:
they pass the same filters as real text.

inputs: train.N (sample folders), model (unless a server is asked)
params: template {kind, samples}, order, stripe, stripes, seed, language, max_tokens, temperature,
top_p, engine, server, batch, generator, fetched_at, purged, pairs (questions with answers are rows
of messages, too)
outputs: samples, parents (the real ones they began from: what was collected goes some day), refused
(some of the answers that became no sample, with their reasons)
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from jupiterd.cycle.data.lineage import Sample, text_hash
from jupiterd.cycle.data.purge import Purge
from jupiterd.cycle.generation.generation_options import GIVEN_UP, WITHOUT
from jupiterd.cycle.templates.refusal import Refusal, RefusedAnswer
from jupiterd.cycle.templates.texts import TEMPLATES
from jupiterd.cycle.templates.turns import turns_of
from jupiterd.cycle.text_rules.secrets import cleaned
from jupiterd.errors import UsageError
from jupiterd.formats import counted
from jupiterd.protocol.frames import Scalar, TaskFinished
from jupiterd.workers.generate.answering import Answering, sampling_of
from jupiterd.workers.generate.documents import Numbered, Stripe, choose_prompts, own_documents
from jupiterd.workers.generate.engine import WritingEngine
from jupiterd.workers.generate.engines import open_engine
from jupiterd.workers.generate.function_prompts import KIND as COMPLETE_FUNCTION
from jupiterd.workers.generate.function_prompts import FunctionPromptMaker
from jupiterd.workers.generate.grounded_prompt import GroundedPrompt, PromptMaker
from jupiterd.workers.generate.rewriting import RewritingPromptMaker
from jupiterd.workers.link import Task
from jupiterd.workers.samples.drop_files import STORED_OF_REASON, shortened, write_drops
from jupiterd.workers.samples.sample_file import SampleWriter, read_all


def run(task: Task) -> TaskFinished:
    """Do the task that a daemon gave."""
    engine = open_engine(task)
    asker = asker_of(task, engine)
    chosen = _chosen(task, asker, engine)
    answering = Answering(task, engine, chosen)
    answering.run()
    counts: Counter[str] = Counter()
    generated: dict[str, Sample] = {}
    parents: dict[str, Sample] = {}
    refusals = RefusedAnswers()
    for number, text in sorted(answering.found.items()):
        ask = chosen[number].ask
        if isinstance(text, RefusedAnswer):
            counts[f"refused.{text.reason}"] += 1
            refusals.add(_sample(task, asker, ask, answering.refused[number]), text)
            continue
        sample = _sample(task, asker, ask, text)
        generated[sample.id] = sample
        parents[ask.parent.id] = ask.parent
    for name, samples in (("samples", generated), ("parents", parents)):
        _write(task.output_dir / name, samples)
    refusals.write(task.output_dir / "refused")
    outputs = {name: name for name in ("samples", "parents", "refused")}
    summary = _whose(task) | _without(answering, len(chosen)) | _abandoned(task, answering)
    return TaskFinished(outputs, {**_counts(answering, len(generated)), **counts}, summary)


def _counts(answering: Answering, samples: int) -> dict[str, float]:
    tally = answering.tally
    return {
        "prompts": len(answering.found),
        "samples": samples,
        "tokens": tally.tokens,
        "kept": tally.cached,
        "writing_s": round(tally.writing_s, 3),
    }


def _without(answering: Answering, wanted: int) -> dict[str, Scalar]:
    """Return what people are told where the generator was lost on the way."""
    if answering.lost is None:
        return {}
    were = "was" if wanted == 1 else "were"
    answered = f"{len(answering.found)} of {counted(wanted, 'prompt')} {were} answered"
    return {WITHOUT: f"{answering.lost.message}; {answered}"}


def _abandoned(task: Task, answering: Answering) -> dict[str, Scalar]:
    """Return what people are told where the generator can't do what is asked."""
    if not answering.is_hopeless:
        return {}
    tried, kind = answering.tally.answered, task.params["template"]["kind"]
    return {GIVEN_UP: f"{kind}: none of {tried} answers could be used, so no more were asked"}


def _whose(task: Task) -> dict[str, Scalar]:
    template = str(task.params["template"]["kind"])
    return {"generator": str(task.params["generator"]), "template": template}


def asker_of(task: Task, engine: WritingEngine) -> PromptMaker:
    """Return the task's template at work; raises UsageError where there is none of that name."""
    kind = str(task.params["template"]["kind"])
    if kind == COMPLETE_FUNCTION:
        return FunctionPromptMaker()
    if kind not in TEMPLATES:
        known = ", ".join([COMPLETE_FUNCTION, *TEMPLATES])
        raise UsageError(f"there is no template {kind}", f"templates: {known}")
    return RewritingPromptMaker(
        TEMPLATES[kind], str(task.params.get("language", "")), engine.specials
    )


def _chosen(task: Task, asker: PromptMaker, engine: WritingEngine) -> list[Numbered]:
    """Return what is asked, the shortest first: prompts of like length share a batch."""
    params = task.params
    purge = Purge(map(str, params.get("purged", ())))
    wanted, max_tokens = int(params["template"]["samples"]), int(params["max_tokens"])

    def read() -> Iterator[Sample]:
        return purge.left(read_all(task.inputs_named("train")))

    chosen = choose_prompts(
        own_documents(read, Stripe.of(params), wanted),
        asker,
        lambda prompt: engine.fits(prompt, max_tokens),
        wanted=wanted,
        seed=int(params["seed"]),
        may_repeat=float(params["temperature"]) > 0,
    )
    return sorted(chosen, key=lambda each: (engine.size(each.ask.prompt), each.ask.prompt.opening))


def _write(folder: Path, samples: dict[str, Sample]) -> None:
    with SampleWriter(folder) as writer:
        for id_ in sorted(samples):
            writer.add(samples[id_])


def _sample(task: Task, asker: PromptMaker, ask: GroundedPrompt, text: str) -> Sample:
    text = cleaned(text).text  # a generator from elsewhere may recite what it was trained on
    sampling, parent = sampling_of(task), ask.parent
    template = str(task.params["template"]["kind"])
    turns = turns_of(template, text) if task.params.get("pairs") else ()
    return Sample(
        id=text_hash(text),
        text=text,
        kind="synthetic",
        depth=parent.depth + 1,
        parents=(parent.id,),
        cluster_id=parent.cluster_id,
        source_uri=parent.source_uri,
        revision=parent.revision,
        license=parent.license,
        collector=asker.version,
        fetched_at=str(task.params["fetched_at"]),
        language=parent.language,
        source=parent.source,
        template=template,
        messages=tuple(turn.to_plain() for turn in turns),
        generator=str(task.params["generator"]),
        sampler={
            "seed": int(task.params["seed"]),
            "max_tokens": sampling.max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            **ask.origin,
        },
    )


class RefusedAnswers:
    """The answers that became no sample; some of each reason are stored for people to look at.

    Of each reason those with the smallest ids are stored. An id is a hash, so that is a fair draw,
    and the same one on whatever machine the work is done. Their files have the form of the filters'
    drops, so that both are shown together.
    """

    def __init__(self) -> None:
        self._entries: dict[Refusal, list[tuple[str, Sample, RefusedAnswer]]] = defaultdict(list)

    def add(self, sample: Sample, refused: RefusedAnswer) -> None:
        """Store what would have become a sample, if it is among the first of its reason."""
        short = shortened(sample)
        entries = self._entries[refused.reason]
        if any(stored_id == sample.id for stored_id, _, _ in entries):  # one empty answer is enough
            return
        entries.append((sample.id, short, refused))
        entries.sort(key=lambda entry: entry[0])
        del entries[STORED_OF_REASON:]

    def write(self, folder: Path) -> None:
        """Write the stored answers, by reason and id."""
        ranked = (self._entries[reason] for reason in sorted(self._entries))
        write_drops(folder, ((sample, why) for entries in ranked for _, sample, why in entries))
