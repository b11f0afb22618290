"""A knowledge domain: where its text comes from, what is held out, when a model counts as better.

Owns the form of a domain file and its checks. Doesn't know where the file lies: it is given text.
`config/domains/_template.yaml` shows every key with a comment.
"""

import json
import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, field_validator
from pydantic_core.core_schema import ValidationInfo

from jupiterd.cycle.base.drop_reason import DropReason
from jupiterd.cycle.base.licenses import LicensePolicy
from jupiterd.cycle.base.strict_model import StrictModel
from jupiterd.cycle.base.yaml_text import YamlMistakesError, parse_yaml
from jupiterd.cycle.data.mixing import MAX_SHARE_OF_OTHERS
from jupiterd.cycle.domain.data_sources import DataSource, named
from jupiterd.cycle.domain.filters import is_code
from jupiterd.cycle.domain.generator import API_KEY_NAME
from jupiterd.cycle.gate.case import GateSettings
from jupiterd.cycle.holdout.holdout_rules import HoldoutRules
from jupiterd.cycle.templates.texts import USUAL
from jupiterd.cycle.text_rules.rules_off import RuleName, rules_mistake, rules_off
from jupiterd.cycle.training.adapters.adapter import checked_adapter
from jupiterd.cycle.training.architectures import MAX_VOCAB
from jupiterd.errors import InvalidDomainError

SHORT_TEMPERATURE = 0.3
SHORT_MAX_TOKENS = 384
"""Of the short tasks, where the file doesn't say."""

_NAME_PATTERN = r"^[a-z][a-z0-9_-]{0,31}$"
_NAME_EXPECTED = "a name of up to 32 lower-case letters, digits, - and _"
_NAME = Field(pattern=_NAME_PATTERN, json_schema_extra={"expected": _NAME_EXPECTED})
_LANGUAGE = Field(
    pattern=r"^(code:)?[a-z][a-z0-9+#-]{0,31}$",
    json_schema_extra={"expected": "a language such as en, or code:python"},
)
_API_KEY_ENV = Annotated[
    str,
    Field(
        pattern=API_KEY_NAME,
        json_schema_extra={"expected": "the name of a variable that ends with _API_KEY"},
    ),
]


class CompleteFunctionTemplate(StrictModel):
    """The generator completes the beginning of a real function."""

    kind: Literal["complete_function"]
    samples: Annotated[int, Field(ge=1, le=100_000)] = 200
    """How many completions a round asks for; 200 take a 1m model about half a minute on a CPU."""


class RewritingTemplate(StrictModel):
    """The generator makes another text of a passage of a real document."""

    kind: Literal[
        "question_answer",
        "explanation",
        "summary",
        "exercise",
        "faq",
        "tutorial",
        "worked_problem",
        "table",
        "rewrite",
    ]
    """The first four are short tasks, which small models can do, too; they differ for prose,
    documentation and code. The others ask more of a model."""
    samples: Annotated[int, Field(ge=1, le=100_000)] = 200
    """How many texts a round asks for."""
    max_tokens: Annotated[int, Field(ge=32, le=8192)] = 768
    """The longest text, in tokens of the generator; one that is cut off there is refused. Absent:
    384 for the short tasks, since small models that go on for longer go round in circles."""


Template = Annotated[CompleteFunctionTemplate | RewritingTemplate, Field(discriminator="kind")]


class Generation(StrictModel):
    """What the generator in force writes: one of your own from round 1 on, else from round 2 on."""

    generator: Annotated[str, Field(max_length=2048)] = ""
    """A model that others made: a folder, ORG/NAME on the Hugging Face hub, or a server that
    answers like OpenAI's, https://HOST/v1#MODEL. Empty: the last promoted student, before there is
    one the chat model that the cycle begins with. `cycle start --generator` counts more."""
    api_key_env: _API_KEY_ENV = ""
    """The environment variable of jupiterd, on the nodes that ask the server, that holds its key;
    the key itself is stored nowhere."""
    engine: Literal["auto", "transformers", "mlx"] = "auto"
    """What a model folder runs on; auto: MLX on Macs, transformers elsewhere."""
    templates: Annotated[tuple[Template, ...], Field(strict=False, max_length=16)] = ()
    """The ways of making a synthetic sample from a real one; empty: real data alone. Absent: with a
    generator that others made question_answer, explanation, summary and exercise, and in a domain
    of Python complete_function; with a chat model to begin with alone, question_answer."""
    max_tokens: Annotated[int, Field(ge=8, le=4096)] = 128
    """The longest function written, in tokens of the generator."""
    temperature: Annotated[float, Field(ge=0.0, le=2.0)] = 0.8
    """Sampling temperature; below 1 because a small model's tail is noise. Absent: 0.3 for the
    short tasks, whose answers are to say what their passage says."""
    top_p: Annotated[float, Field(ge=0.05, le=1.0)] = 0.95
    """Nucleus sampling: the share of probability that is drawn from."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """Return the kinds of the templates."""
        return tuple(template.kind for template in self.templates)

    def max_tokens_of(self, template: "CompleteFunctionTemplate | RewritingTemplate") -> int:
        """Return the longest text of one template, in tokens."""
        if isinstance(template, CompleteFunctionTemplate):
            return self.max_tokens
        is_usual = template.kind in USUAL and "max_tokens" not in template.model_fields_set
        return SHORT_MAX_TOKENS if is_usual else template.max_tokens

    def temperature_of(self, template: "CompleteFunctionTemplate | RewritingTemplate") -> float:
        """Return the sampling temperature of one template."""
        is_usual = template.kind in USUAL and "temperature" not in self.model_fields_set
        return SHORT_TEMPERATURE if is_usual else self.temperature


class MixRatio(StrictModel):
    """How synthetic text is mixed with real text; real text is never left out."""

    synthetic_share: Annotated[float, Field(ge=0.0, le=MAX_SHARE_OF_OTHERS)] | None = None
    """Share of a round's bytes that may be synthetic to begin with; absent: 0.4 where the generator
    is one that others made, 0.3 where it is our own student. It rises where small students learned
    more with it than without, to 0.6 and 0.3 at most, and falls where they learned less."""


class Quality(StrictModel):
    """Texts of the other sources that read least like those of chosen ones are left out."""

    like: Annotated[tuple[str, ...], Field(strict=False, min_length=1, max_length=63)]
    """Names of the sources whose texts are the reference; of them none is left out."""
    keep_share: Annotated[float, Field(ge=0.05, le=0.99)] = 0.8
    """Share of the other sources' texts that is kept, those that read most like the reference."""


class Filters(StrictModel):
    """What is asked of a text beside the rules that every text meets."""

    rules: Literal["minimal"] | dict[RuleName, Literal["off"]] = Field(default_factory=dict)
    """Rules that aren't asked of any text, such as `few-letters: off`. minimal: all but those
    against other languages, far too long texts, other people's code and data files."""
    quality: Quality | None = None
    """Absent: it isn't judged."""

    @field_validator("rules", mode="before")
    @classmethod
    def _known(cls, rules: object) -> object:
        """Say in one sentence what is wrong; pydantic says it once for each way to write it."""
        if mistake := rules_mistake(rules):
            raise ValueError(mistake)
        return rules

    @property
    def off(self) -> frozenset[DropReason]:
        """Return the rules that aren't asked."""
        return rules_off(self.rules)


class Holdout(StrictModel):
    """Real text that nothing but the evaluation ever sees; how much is worked out from the text.

    After collecting, clusters are chosen as large as there are enough of: sites and repositories,
    else folders, else files. Near-duplicates stay together.
    """

    fraction: Annotated[float, Field(ge=0.05, le=0.5)] | None = None
    """Share of the clusters that is held out; absent: what the gate needs, a third of 60 documents,
    a tenth of 4,000."""
    salt: Annotated[str, Field(min_length=1, max_length=64)]
    """The key that chooses them. With another one, scores can't be compared with those before."""
    dev: Annotated[float, Field(ge=0.0, le=0.4)] | None = None
    """Share of what is held out for the validation loss while training, which is no part of a
    verdict; absent: about a fifth. 0: training has no such loss."""
    vault: Annotated[float, Field(ge=0.0, le=0.4)] | None = None
    """Share of what is held out that is kept for later: nobody and nothing looks at it. Absent:
    nothing, or a quarter where there are 2,000 documents or more."""
    min_documents: Annotated[int, Field(ge=10, le=1_000_000)] | None = None
    """Where the gate would have fewer documents the cycle ends before it trains; absent: 12."""
    min_clusters: Annotated[int, Field(ge=5, le=1_000_000)] | None = None
    """And where they would be of fewer clusters, since documents of one cluster resemble each
    other; absent: 6."""

    def at_collection(self) -> "Holdout":
        """Return the rule of cycles that began before the text decided: a tenth of all clusters."""
        usual = {"fraction": 0.1, "dev": 0.25, "vault": 0.25}
        absent = {name: each for name, each in usual.items() if getattr(self, name) is None}
        return self.model_copy(update=absent)


class Evaluation(StrictModel):
    """What of each held-out document is scored, and what else models are asked."""

    min_document_bytes: Annotated[int, Field(ge=1, le=65_536)] = 256
    """Shorter documents aren't scored: bits per byte of a few bytes is noise."""
    max_document_bytes: Annotated[int, Field(ge=256, le=16_777_216)] = 16_384
    """Longer documents are cut here, so that a few don't take all the time."""
    max_cluster_documents: Annotated[int, Field(ge=1, le=100_000)] = 20
    """No more documents of one cluster are scored: they resemble each other, so further ones add
    time and little evidence, and one large package would outvote the rest."""
    questions: Annotated[str, Field(max_length=4096)] = ""
    """Your own questions with their right answers, a file of JSON lines, for `jupiterctl model
    eval`; a relative path begins at this file's folder. A cycle keeps them as they are when it
    starts, leaves text that has one word for word out of training, and decides nothing by them.
    Empty: there are none."""

    def limits(self) -> dict[str, Any]:
        """Return what of each document is scored, as work items say it; nothing else goes there."""
        return self.model_dump(mode="json", exclude={"questions"})


class Gate(StrictModel):
    """When a candidate replaces the incumbent."""

    alpha: Annotated[float, Field(ge=0.0001, le=0.2)] = 0.05
    """Chance of ever promoting a candidate that isn't better by the margin, over all rounds."""
    margin_bpb: Annotated[float, Field(ge=0.0, le=1.0)] = 0.005
    """The improvement in bits per byte that a candidate must be shown to exceed."""
    stratum_veto_bpb: Annotated[float, Field(ge=0.0, le=1.0)] = 0.02
    """No stratum, nor the rarest quarter of the documents, may be worse by more than this."""
    max_forgetting: Annotated[float, Field(ge=0.0, le=10.0)] = 0.02
    """Of a cycle that began with a model: by this share general text, which ships with Jupiter, may
    take more bits per byte than with that model."""
    proxies: Literal["auto", "off"] = "auto"
    """Small students that show whether text teaches: a candidate's before it is promoted, and a
    round's synthetic text beside real text alone, which decides how much there may be of it."""
    proxy_noticed_bpb: Annotated[float, Field(ge=0.001, le=1.0)] | None = None
    """A difference between small students that is noticed with a chance of 80 %; half of it takes
    four times as many. Absent: what two of each notice, 0.01 bits per byte where models have 100
    million parameters or more."""
    proxy_seeds: Annotated[int, Field(ge=2, le=64)] | None = None
    """How many small students each text has; absent: as many as that takes, 16 at most."""
    judge: Annotated[str, Field(max_length=2048)] = ""
    """A model that others made and that may break a tie of the bits per byte: a folder, ORG/NAME on
    the Hugging Face hub, or a server that answers like OpenAI's, https://HOST/v1#MODEL. It compares
    what candidate and last student write, and is heard only if it judges planted pairs rightly. It
    had better be of another family than both. Empty: none, and a tie is no reason to promote."""
    judge_api_key_env: _API_KEY_ENV = ""
    """The environment variable of jupiterd that holds the key of the judge's server, as of
    `generation.api_key_env`."""


class Training(StrictModel):
    """Overrides for short runs and tests; whatever is absent is derived from the size."""

    steps: Annotated[int, Field(ge=1, le=100_000_000)] | None = None
    """Optimizer steps of a round; unless told, as many as its text is worth."""
    vocab_size: Annotated[int, Field(ge=257, le=MAX_VOCAB)] | None = None
    """Entries of the tokenizer: 256 bytes, one end mark, the rest merges."""
    seq_len: Annotated[int, Field(ge=16, le=131_072)] | None = None
    """Tokens of one training sequence."""
    batch_sequences: Annotated[int, Field(ge=1, le=65_536)] | None = None
    """Sequences of one optimizer step, over all ranks."""
    learning_rate: Annotated[float, Field(ge=0.0, le=1.0)] | None = None
    """Peak learning rate."""
    lora: Annotated[str, Field(max_length=256), AfterValidator(checked_adapter)] | None = None
    """An adapter is trained beside the weights of `init`, which stay as they are: such as
    rank=16,alpha=32, in the words of `--lora`."""

    shard: Literal["auto", "off", 1, 2, 3] | None = None
    """What of the model is cut over the machines that train it, in the words of `--shard`; absent:
    no more than takes for it to fit."""

    def overrides(self) -> dict[str, float | int]:
        """Return what is said of the shape and the plan of a round."""
        return self.model_dump(exclude_none=True, exclude={"lora", "shard"})


class Domain(StrictModel):
    """One knowledge domain, as its file says."""

    version: Literal[1]
    """Version of this form."""
    domain: Annotated[str, _NAME] = ""
    """The name on the command line; left out: the file's own name, without .yaml."""
    title: Annotated[str, Field(min_length=1, max_length=200)]
    """What it is about, for people."""
    language: Annotated[str, _LANGUAGE]
    """The natural one that prose must be in, such as `en`; what else is asked of a text goes by its
    own kind. `code:` and a programming language: every text must be such code."""
    license_policy: LicensePolicy = LicensePolicy()
    init: Annotated[str, Field(min_length=1, max_length=2048)] = "scratch"
    """What round 1 begins with: scratch, or an open base model, a folder or ORG/NAME on the
    Hugging Face hub. `cycle start --init` counts more."""
    adapter: Annotated[str, Field(min_length=1, max_length=2048)] | None = None
    """The folder of an adapter to `init`, of peft or mlx-lm, that round 1 goes on with; its own
    rank and modules count, not `training.lora`. `cycle start --adapter` counts more."""
    # After the policy, so that its validator can look at it.
    data_sources: Annotated[
        tuple[DataSource, ...], Field(strict=False, min_length=1, max_length=64)
    ]
    """Where real text comes from; each becomes one collecting task."""
    # After the sources, so that its validator can look at them.
    filters: Filters = Filters()
    generation: Generation = Generation()
    mix_ratio: MixRatio = MixRatio()
    holdout: Holdout
    evaluation: Evaluation = Evaluation()
    gate: Gate = Gate()
    training: Training = Training()

    @field_validator("data_sources")
    @classmethod
    def _permitted(
        cls, sources: tuple[DataSource, ...], info: ValidationInfo
    ) -> tuple[DataSource, ...]:
        policy = info.data.get("license_policy")
        for number, source in enumerate(sources):
            if isinstance(policy, LicensePolicy) and not source.may_be_permitted(policy):
                raise ValueError(
                    "expected sources that license_policy permits, "
                    f"got {source.license} in number {number}"
                )
        return named(sources)

    @field_validator("generation")
    @classmethod
    def _suits_language(cls, generation: Generation, info: ValidationInfo) -> Generation:
        language = str(info.data.get("language", ""))
        known = {"complete_function", *USUAL}
        prose = [each.kind for each in generation.templates if each.kind not in known]
        if prose and is_code(language):
            raise ValueError(f"expected templates for {language}, got {prose[0]}, which is prose")
        return generation

    @field_validator("filters")
    @classmethod
    def _judged_by_some(cls, filters: Filters, info: ValidationInfo) -> Filters:
        sources = info.data.get("data_sources")
        if filters.quality is None or sources is None:
            return filters
        names, like = {source.name for source in sources}, set(filters.quality.like)
        if not like < names:
            known = ", ".join(sorted(names))
            raise ValueError(f"expected quality.like to name some, not all, of {known}")
        return filters

    @property
    def wants_generated_text(self) -> bool:
        """Say whether rounds may be trained on text that a model has written."""
        return bool(self.generation.templates) and self.mix_ratio.synthetic_share != 0

    def gate_settings(self) -> GateSettings:
        """Return what the gate needs to know of this domain."""
        return GateSettings(
            alpha=self.gate.alpha,
            margin_bpb=self.gate.margin_bpb,
            stratum_veto_bpb=self.gate.stratum_veto_bpb,
            min_documents=self.holdout_rules().least_documents,
            min_clusters=self.holdout_rules().least_clusters,
        )

    def holdout_rules(self) -> HoldoutRules:
        """Return what decides what is held out."""
        return HoldoutRules(
            **self.holdout.model_dump(),
            min_document_bytes=self.evaluation.min_document_bytes,
            max_cluster_documents=self.evaluation.max_cluster_documents,
            margin_bpb=self.gate.margin_bpb,
            alpha=self.gate.alpha,
        )


def domain_mistakes(text: str, file_name: str) -> tuple[str, ...]:
    """Return every mistake of a domain file, one line each; none: the file is right."""
    try:
        _named_after(file_name, parse_yaml(text, file_name, Domain))
    except YamlMistakesError as error:
        return error.mistakes
    return ()


def parse_domain(text: str, file_name: str) -> Domain:
    """Return the domain that the text describes; its file says its name where the text doesn't.

    Raises:
        InvalidDomainError: with file, line and what was expected there, for the first mistake.
    """
    try:
        return _named_after(file_name, parse_yaml(text, file_name, Domain))
    except YamlMistakesError as error:
        more = len(error.mistakes) - 1
        others = f" (and {more} more)" if more else ""
        raise InvalidDomainError(
            error.mistakes[0] + others, f"jupiterctl domain lint {file_name} shows every mistake"
        ) from error


def domain_text(domain: Domain) -> str:
    """Return a file that says the same; what the domain leaves out has a meaning of its own."""
    plain = domain.model_dump(mode="json", exclude_none=True, exclude_unset=True)
    return json.dumps(plain, ensure_ascii=False)


def _named_after(file_name: str, domain: Domain) -> Domain:
    if domain.domain:
        return domain
    last = file_name.rpartition("/")[2].removesuffix(".yaml").removesuffix(".yml")
    name = last.lstrip("_")  # templates begin with one, so that nobody lists them
    if not re.match(_NAME_PATTERN, name):
        raise YamlMistakesError(
            [f"{file_name}:1: domain: expected {_NAME_EXPECTED}, for the file's own can't be one"]
        )
    return domain.model_copy(update={"domain": name})
