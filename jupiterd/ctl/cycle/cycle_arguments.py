"""The fields of the command that starts or plans a cycle.

Owns reading the domain file, and finding the models that the command line or the file names.
Doesn't define options, or know what a cycle does.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from jupiterd.cluster.training.asked_backend import GANG_BACKEND
from jupiterd.cluster.training.tunnel_plan import GANG_ENCRYPTION
from jupiterd.ctl.hub.fetches import Fetches
from jupiterd.ctl.options.island_options import OF_ISLANDS
from jupiterd.ctl.options.training_options import training_arguments
from jupiterd.cycle.domain.generator import is_server
from jupiterd.errors import UsageError

if TYPE_CHECKING:
    from jupiterd.ctl.sources.base_model_source import FirstModel
    from jupiterd.cycle.domain.domain import Domain

NO_LORA = "leave out --lora, or begin with the base alone"


def start_arguments(  # noqa: PLR0913, PLR0917 - an option each
    domain: str,
    rounds: int,
    size: str,
    engine: str | None,
    seed: int | None,
    generator: str | None = None,
    api_key_env: str | None = None,
    init: str = "",
    judge: str | None = None,
    adapter: str | None = None,
    *,
    fetches: Fetches,
    state_dir: Path,
    is_plan: bool = False,
    without_verdict: bool = False,
    **said: Any,
) -> dict[str, Any]:
    """Return the fields of the command.

    fetches: gets the models that still have to be downloaded from the hub
    state_dir: of the daemon, which knows the bases of the cluster's adapters
    is_plan: skip the generator, and accept that the hub can't be reached for the first model

    Raises:
        NotFoundError: there is no such domain, no such generator, or no such model.
        UsageError: no domain is named, and this folder hasn't exactly one.
        InvalidDomainError: the domain file has mistakes.
        JupiterError: the generator isn't available, or can't be a generator.
    """
    from jupiterd.ctl.sources.base_model_source import init_arguments, planned_init
    from jupiterd.ctl.sources.domain_files import only_domain, read_domain_file
    from jupiterd.ctl.sources.domain_name import checked_domain
    from jupiterd.ctl.sources.domain_questions import questions_text
    from jupiterd.ctl.sources.generator_source import generator_arguments, judge_arguments
    from jupiterd.cycle.generation.usual_templates import check_is_used

    file = read_domain_file(domain or only_domain())
    found = checked_domain(file)
    writing = found.generation
    named = writing.generator if generator is None else generator
    check_is_used(found, {"name": named} if named else {})
    key_name = (
        (writing.api_key_env if is_server(named) else "") if api_key_env is None else api_key_env
    )
    name = found.domain
    arguments: dict[str, Any] = {
        "domain_name": name,
        "domain_yaml": file.text,
        "rounds": rounds,
        "size": size,
        **({} if is_plan else generator_arguments(named, fetches, key_name)),
        **({"generator": {}} if writing.generator and (is_plan or not named) else {}),
    }
    if found.gate.judge and is_plan:
        arguments["judge"] = {}
    elif found.gate.judge:
        wanted = found.gate.judge if judge is None else judge
        arguments |= judge_arguments(wanted, fetches, found.gate.judge_api_key_env)
    init_of = planned_init if is_plan else init_arguments
    arguments |= init_of(_first_model(found, init, adapter), fetches, state_dir)
    if init and init != found.init:
        arguments["begins_with"] = init
    if found.evaluation.questions:
        arguments["questions_text"] = questions_text(file.path, found)
    arguments |= training_arguments(_with_words_of(arguments.get("init", {}), said))
    if without_verdict:
        arguments["without_verdict"] = True
    told = (*OF_ISLANDS, GANG_ENCRYPTION, GANG_BACKEND)
    settings = {name: said[name] for name in told if said.get(name) is not None}
    chosen = {"engine": engine, "seed": seed, "settings": settings or None}
    return arguments | {name: value for name, value in chosen.items() if value is not None}


def _first_model(domain: "Domain", init: str, adapter: str | None) -> "FirstModel":
    """Return what round 1 begins with; the domain's adapter stands beside its own model alone."""
    from jupiterd.ctl.sources.base_model_source import FirstModel

    is_of_domain = init in ("", domain.init)
    found = domain.adapter if adapter is None and is_of_domain else adapter
    return FirstModel(init or domain.init, found)


def _with_words_of(init: dict[str, Any], said: dict[str, Any]) -> dict[str, Any]:
    """Return what is said of the training, in an adapter's own words where one is begun with."""
    if (words := init.pop("lora", None)) is None:
        return said
    if said.get("lora") is not None:
        raise UsageError("--lora says what a new adapter is, and this one is there", NO_LORA)
    return {**said, "lora": words}
