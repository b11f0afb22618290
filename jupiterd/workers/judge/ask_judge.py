"""The task `ask_judge`: ask a judge about pairs of texts, each in both orders.

Owns the order of asking: the planted pairs come first, and where the judge does badly at them it
isn't asked about anything else. Doesn't know who wrote what: the question tells nobody (`cycle.
judge.question`), and what the answers come to is `cycle.gate.tie_break`'s.

inputs: pairs, model (unless a server is asked)
params: judge (its id), server, engine
outputs: pairs (a folder with pairs.jsonl, with what was said)
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from blake3 import blake3

from jupiterd.cycle.gate.record import PAIRS_FILE, pair_lines, read_pair_lines
from jupiterd.cycle.gate.tie_break import try_judge
from jupiterd.cycle.judge.pair import Pair
from jupiterd.cycle.judge.question import chosen, question, stored_reply
from jupiterd.errors import WorkStoppedError
from jupiterd.protocol.frames import TaskFinished
from jupiterd.workers.evaluate.score_file import write_text
from jupiterd.workers.generate.answer_cache import AnswerCache, key_of
from jupiterd.workers.generate.answering import cache_folder
from jupiterd.workers.generate.engine import Request, Sampling, WritingEngine
from jupiterd.workers.generate.engines import open_engine
from jupiterd.workers.link import Task

OF_SERVERS = Sampling(max_tokens=1024, temperature=0.0, top_p=1.0)
"""Room for models that think aloud, which nobody here can have stop it."""

OF_FOLDERS = Sampling(max_tokens=16, temperature=0.0, top_p=1.0)


def run(task: Task) -> TaskFinished:
    """Do the task that a daemon gave."""
    path = task.inputs["pairs"] / PAIRS_FILE
    pairs = read_pair_lines([path.read_text(encoding="utf-8")])
    planted = [pair for pair in pairs if pair.is_planted]
    unplanted = [pair for pair in pairs if not pair.is_planted]
    engine = open_engine(task)
    with AnswerCache(cache_folder(task)) as cache:
        asking = _Asking(task, engine, cache, 2 * len(pairs))
        planted = asking.ask(planted)
        trial = try_judge(planted)
        unplanted = unplanted if trial.trouble else asking.ask(unplanted)
    write_text(task.output_dir / "pairs" / PAIRS_FILE, pair_lines([*planted, *unplanted]))
    counts = {
        "questions": asking.done,
        "judge_tokens": asking.tokens,
        "planted_right": trial.right,
        "planted_pairs": trial.pairs,
    }
    return TaskFinished({"pairs": "pairs"}, counts, {"judge": str(task.params["judge"])})


class _Asking:
    """Asks one judge, and counts."""

    def __init__(self, task: Task, engine: WritingEngine, cache: AnswerCache, total: int) -> None:
        self._task = task
        self._engine = engine
        self._cache = cache
        self._total = total
        self._sampling = OF_SERVERS if task.params.get("server") else OF_FOLDERS
        self.done = 0
        self.tokens = 0

    def ask(self, pairs: Sequence[Pair]) -> list[Pair]:
        """Return the pairs with what the judge said of each in both orders.

        Raises:
            JupiterError: it can't answer.
        """
        requests = [request for pair in pairs for request in self._requests(pair)]
        replies = self._replies(requests)
        return [
            replace(pair, replies=(replies[2 * number], replies[2 * number + 1]))
            for number, pair in enumerate(pairs)
        ]

    def _requests(self, pair: Pair) -> Iterator[Request]:
        """Yield the question in both orders; a base model is stopped as soon as it has answered."""
        seed = int.from_bytes(blake3(pair.id.encode()).digest(4), "big") >> 1
        for first, second in ((pair.ours, pair.theirs), (pair.theirs, pair.ours)):
            prompt = question(pair.beginning, first, second, self._engine.specials)
            yield Request(prompt, seed, lambda said: chosen(said) is not None)

    def _replies(self, requests: Sequence[Request]) -> list[str]:
        """Return the answers; what doesn't fit into the judge is no answer."""
        found: dict[int, str] = {}
        keys = [
            key_of(request, str(self._task.params["judge"]), self._sampling) for request in requests
        ]
        for number, key in enumerate(keys):
            if (written := self._cache.get(key)) is not None:
                self._take(found, number, written.text)
            elif not self._engine.fits(requests[number].prompt, self._sampling.max_tokens):
                self._take(found, number, "")
        left = [number for number in range(len(requests)) if number not in found]
        for start in range(0, len(left), self._engine.batch):
            if self._task.stop_requested:
                raise WorkStoppedError("asking the judge was stopped")
            batch = left[start : start + self._engine.batch]
            for at, written in self._engine.write([requests[n] for n in batch], self._sampling):
                self.tokens += written.tokens
                self._cache.put(keys[batch[at]], written)
                self._take(found, batch[at], written.text)
        return [found[number] for number in range(len(requests))]

    def _take(self, found: dict[int, str], number: int, reply: str) -> None:
        found[number] = stored_reply(reply)
        self.done += 1
        self._task.progress(self.done, self._total, "questions")
