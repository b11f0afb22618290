"""A domain small enough for a test: folders of Python files that a seed decides, and its file.

Owns the text. It resembles real code just enough to pass the filters and to be learned from.
"""

import random
from collections.abc import Sequence
from pathlib import Path

CLUSTERS = 30
FILES_PER_CLUSTER = 2
FUNCTIONS_PER_FILE = 6

_NOUNS = ("order", "queue", "branch", "shelf", "ticket", "river", "engine", "ledger", "parcel")
_VERBS = ("count", "merge", "filter", "collect", "measure", "rotate", "split", "describe")
_BODIES = (
    """\
    total = 0
    for {a} in {b}s:
        total += {a}.size * {n}
    return total
""",
    """\
    if not {b}s:
        return {n}
    return max({b}s, key=lambda {a}: {a}.weight + {n})
""",
    """\
    found = []
    while {b}s and len(found) < {n}:
        {a} = {b}s.pop()
        found.append({a})
    return found
""",
    """\
    # Every {a} among the {b}s that weighs more than {n}.
    return [{a} for {a} in {b}s if {a}.weight > {n}]
""",
)

_DOMAIN = """version: 1
domain: tiny
title: Python files made for a test
language: code:python
data_sources:
{sources}
{more}generation:
  templates: {templates}
  max_tokens: 16
holdout: {{fraction: 0.4, salt: tiny, dev: {dev}, vault: 0.0, min_documents: 10, min_clusters: 5}}
evaluation: {{min_document_bytes: 64, max_document_bytes: 1024{questions}}}
gate: {{proxies: {proxies}}}
training: {{steps: {steps}, vocab_size: 512, seq_len: 64, batch_sequences: {batch}}}
"""
_SOURCE = '  - {{kind: folder, path: {path}, license: MIT, glob: "**/*.py"}}'


def write_domain(
    folder: Path,
    steps: int = 30,
    sources: Sequence[str] = ("code",),
    more: str = "",
    proxies: str = "off",
    samples: int = 240,
    dev: float = 0.0,
    questions: str = "",
    batch: int = 4,
) -> Path:
    """Write the files and the domain below `folder`; return the domain file.

    The packages go to the sources in turn, each of which is a folder of that name; `more` is a line
    of the domain file. Small students, which `proxies: auto` trains, take some seconds more. So
    many samples are asked for where anybody writes; 0: the domain has no templates. `dev`:
    development text, of the holdout. `questions`: the domain's own, as lines of their file.
    `batch`: of sequences, in each step.
    """
    chance = random.Random(20)
    for cluster in range(CLUSTERS):
        source = sources[cluster % len(sources)]
        package = folder / source / f"package_{cluster:02}"
        package.mkdir(parents=True)
        for number in range(FILES_PER_CLUSTER):
            (package / f"module_{number}.py").write_text(_module(chance))
    domain = folder / "tiny.yaml"
    listed = "\n".join(_SOURCE.format(path=folder / source) for source in sources)
    own = ", questions: questions.jsonl" if questions else ""
    if questions:
        (folder / "questions.jsonl").write_text(questions)
    values = {"sources": listed, "steps": steps, "more": more, "proxies": proxies}
    templates = f"[{{kind: complete_function, samples: {samples}}}]" if samples else "[]"
    values |= {"templates": templates, "dev": dev, "questions": own, "batch": batch}
    domain.write_text(_DOMAIN.format(**values))
    return domain


def _module(chance: random.Random) -> str:
    return "\n\n".join(["import sys\n", *(_function(chance) for _ in range(FUNCTIONS_PER_FILE))])


def _function(chance: random.Random) -> str:
    first, second = chance.sample(_NOUNS, 2)
    body = chance.choice(_BODIES).format(a=first, b=second, n=chance.randrange(1, 100))
    return f"def {chance.choice(_VERBS)}_{first}_{chance.randrange(1000)}({second}s):\n{body}"
