"""Asking for data sets and training runs: what is recorded, and what is refused in a line."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jupiterd.cluster.facts.facts import (
    CycleFailed,
    DataRequested,
    Fact,
    RoleAssigned,
    TrainingStarted,
    WorkCompleted,
)
from jupiterd.cycle.runs.run_settings import RunSettings
from jupiterd.daemon.commands.data_commands import prepare_data
from jupiterd.daemon.commands.dry_run import (
    NOT_COPIED,
    cycle_without_copying,
    training_without_copying,
    tried,
)
from jupiterd.daemon.commands.term_adapters import (
    predicted_training,
    start_cycle,
    start_training,
    with_term,
)
from jupiterd.daemon.commands.train_commands import resume_training, stop_training
from jupiterd.daemon.leader.term_services import TermServices
from jupiterd.errors import (
    ConflictError,
    EmptySourceError,
    JupiterError,
    MissingExtraError,
    NotFoundError,
    UsageError,
)
from jupiterd.ids import ArtifactId, CycleId, short
from jupiterd.protocol.commands.cycle_commands import StartCycle
from jupiterd.protocol.commands.data_commands import PrepareData
from jupiterd.protocol.commands.train_commands import ResumeTraining, StartTraining, StopTraining
from tests.support.cluster.building import (
    CYCLE,
    NODES,
    checkpoint,
    data_asked,
    round_over,
    started,
    training,
)
from tests.support.daemon.commands_alone import alone_with
from tests.support.daemon.two_nodes import found, serving

FOLDER = {"source": {"kind": "folder", "path": "/letters"}, "name": "letters", "node": "n"}
MADE = WorkCompleted(
    CYCLE, 1, "pack", "r1/pack/0", NODES[0],
    {"tokenizer": ArtifactId("7" * 64), "shards": ArtifactId("5" * 64)},
    {"tokens": 10_000.0, "vocab_size": 300.0},
)  # fmt: skip


@asynccontextmanager
async def leads(
    folder: Path, *facts: Fact, engines: tuple[str, ...] = ("torch",), **machine: Any
) -> AsyncGenerator[TermServices]:
    """A term of a node that trains, in a cluster that knows these facts."""
    async with serving(folder, "one") as one:
        one.hardware = one.local_view.hardware = replace(one.hardware, engines=engines, **machine)
        own = RoleAssigned(one.identity.node_id, "hybrid", "it is alone", 1)
        await found(one, facts=(own, *facts))
        yield one._begin_term(1)


def of_latest(leading: TermServices) -> tuple[DataRequested | None, TrainingStarted | None]:
    run = max(leading.term.state.cycles.values(), key=lambda run: run.start_order)
    return run.requested, run.training


async def test_text_is_made_into_a_data_set_by_the_run_that_trains_on_it(tmp_path: Path) -> None:
    async with leads(tmp_path) as leading:
        done = await start_training(
            leading, StartTraining.read({**FOLDER, "model": "1m", "settings": {}})
        )
        asked, run = of_latest(leading)
        assert asked is not None
        assert run is not None
        assert run.cycle == run.data == asked.cycle == done["train"]
        assert (asked.node, asked.source["path"], asked.source["vocab_size"]) == (
            "n", "/letters", 4096,
        )  # fmt: skip
        assert (run.name, run.model, run.engine, run.nodes) == ("letters", "1m", "auto", ())
        assert RunSettings.parse(dict(run.settings)).batch_sequences == 32
        assert (done["ranks"], done["batch_sequences"], done["seq_len"]) == (1, 32, 1024)


@pytest.mark.parametrize("name", ["letters", CYCLE[:6], "5" * 8])
async def test_a_data_set_is_named_by_its_name_or_an_id(tmp_path: Path, name: str) -> None:
    async with leads(tmp_path, data_asked(), MADE) as leading:
        done = await start_training(leading, StartTraining.read({"data": name, "model": "1m"}))
        run = leading.term.cycle(CycleId(done["train"]))
        assert run.requested is None
        assert run.training is not None
        assert (run.training.data, run.training.name) == (CYCLE, "letters")


async def refusal(leading: TermServices, **more: Any) -> JupiterError:
    """Return what refuses a run; its dry run is refused by the same."""
    asked = {"data": "letters", "model": "1m", **more}
    with pytest.raises(JupiterError) as caught:
        await start_training(leading, StartTraining.read(asked))
    with pytest.raises(type(caught.value)) as dry:
        await tried(start_training, leading, StartTraining.read(asked))
    assert (dry.value.message, dry.value.hint) == (caught.value.message, caught.value.hint)
    assert "\n" not in caught.value.message
    assert caught.value.hint
    return caught.value


async def test_what_can_t_be_is_refused_in_a_line_with_a_hint(tmp_path: Path) -> None:
    async with leads(tmp_path, data_asked(), MADE) as leading:
        before = leading.term.replica.ledger.head()
        for more, kind, says in (
            ({"data": "poems"}, NotFoundError, "no data set is called poems; there is letters"),
            ({"data": "bread/1"}, NotFoundError, "no data set is called bread/1; there is"),
            ({"data": ""}, NotFoundError, "no data set is called"),
            ({"model": "9m"}, NotFoundError, "there is no model 9m: it is no size, and no folder"),
            ({"engine": "jax"}, UsageError, "no engine jax"),
            ({"nodes": "nobody"}, NotFoundError, "no node is called nobody"),
            ({"nodes": "7"}, UsageError, "the cluster has 1"),
            ({"nodes": ","}, UsageError, "names nobody"),
            ({"engine": "mlx"}, MissingExtraError, "none of 1 trainers has mlx"),
            ({"settings": {"precision": "fp8"}}, UsageError, "precision"),
            ({"settings": {"seq_len": 10_000}}, EmptySourceError, "one sequence takes 10,001"),
            ({"source": {"kind": "folder"}, "name": "x"}, UsageError, "path"),
            ({**FOLDER, "name": "a/b"}, UsageError, "a data set's name"),
        ):
            error = await refusal(leading, **more)
            assert isinstance(error, kind), (more, error)
            assert says in error.message
        assert leading.term.replica.ledger.head() == before


async def test_a_run_with_an_adapter_names_the_member_whose_build_trains_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = '{"model_type": "gpt2", "vocab_size": 320, "n_positions": 128, "n_embd": 32, '
    config += '"n_layer": 2, "n_head": 2}'
    settings: dict[str, object] = {"seq_len": 64, "max_steps": 2, "lora": "rank=2"}
    asked = {"model": "mine", "config": config, "weights": "a" * 64, "settings": settings}
    async with leads(tmp_path, data_asked(), MADE) as leading:
        machines, own = leading.fleet_view.machines, leading.term.self_id
        known = machines.hardware_of(own)
        assert known is not None
        older = replace(known, trains_adapters=False)
        with monkeypatch.context() as build:
            build.setattr(machines, "hardware_of", lambda _: older)
            error = await refusal(leading, **asked)
        assert f"{machines.name_of(own)} runs a build of jupiterd that can't" in error.message
        done = await start_training(leading, StartTraining.read({"data": "letters", **asked}))
        assert done["expected"]["adapter"]["options"] == "rank=2,alpha=4"


async def test_only_data_sets_that_were_made_are_named_where_another_is_asked_for(
    tmp_path: Path,
) -> None:
    never = replace(data_asked("poems"), cycle=CycleId("b" * 16))
    failed = CycleFailed(never.cycle, "empty-source", "the folder is empty", "fill it")
    async with leads(tmp_path, data_asked(), MADE, never, failed) as leading:
        error = await refusal(leading, data="essays")
        assert error.message == "no data set is called essays; there is letters"
        assert "poems was never made" in (await refusal(leading, data="poems")).message


async def test_what_trains_hides_no_mistake_from_a_dry_run(tmp_path: Path) -> None:
    async with leads(tmp_path, data_asked(), MADE) as leading:
        done = await start_training(leading, StartTraining.read({"data": "letters", "model": "1m"}))
        again = StartTraining.read({"data": "letters", "model": "1m"})
        with pytest.raises(ConflictError, match="is running already"):
            await start_training(leading, again)
        looked = await predicted_training(leading, again)
        assert looked["expected"]["parameters"] == done["expected"]["parameters"]
        assert looked["refused_now"] == {
            "message": f"training letters ({short(done['train'])}) is running already",
            "hint": "jupiterctl train status shows it; jupiterctl train stop ends it",
        }
        with pytest.raises(NotFoundError, match="there is no model 9m"):
            await predicted_training(leading, replace(again, model="9m"))


async def test_a_dry_run_makes_all_checks_and_records_nothing(tmp_path: Path) -> None:
    weights = tmp_path / "model"
    weights.mkdir()
    config = '{"model_type": "gpt2", "vocab_size": 320, "n_positions": 128, "n_embd": 32, '
    config += '"n_layer": 2, "n_head": 2}'
    settings = {"seq_len": 64, "max_steps": 10}
    asked = {"data": "letters", "model": "mine", "config": config, "settings": settings}
    async with leads(tmp_path / "node", data_asked(), MADE) as leading:
        before = leading.term.replica.ledger.head()
        for known in ({"model": "1m"}, {"weights": "a" * 64}):
            await tried(start_training, leading, StartTraining.read({**asked, **known}))
        assert leading.term.replica.ledger.head() == before
        with pytest.raises(NotFoundError, match="no safetensors"):
            await training_without_copying(
                StartTraining.read({**asked, "weights_folder": str(weights)})
            )
        (weights / "model.safetensors").write_bytes(b"")
        given = await training_without_copying(
            StartTraining.read({**asked, "weights_folder": str(weights)})
        )
        await tried(start_training, leading, given)
        init: dict[str, object] = {"weights_folder": str(weights)}
        with pytest.raises(NotFoundError, match=r"no tokenizer\.json"):
            await cycle_without_copying(StartCycle(domain_name="x", domain_yaml="", init=init))
        done = await start_training(leading, StartTraining.read({**asked, "weights": "a" * 64}))
        assert done["train"], "the leader itself still records"
        assert leading.term.replica.ledger.head() != before


async def test_a_step_of_more_than_was_said_is_told_with_what_changes_it(tmp_path: Path) -> None:
    asked = {"data": "letters", "model": "1m"}
    async with leads(tmp_path / "node", data_asked(), MADE) as leading:
        said: dict[str, object] = {"seq_len": 64, "max_steps": 10, "batch_size": 4}
        for both, times in ((said, 1), (said | {"gradient_accumulation_steps": 2}, 0)):
            told = StartTraining.read({**asked, "settings": both})
            sheet = (await start_training(leading, told))["sheet"]
            assert sum("A step trains on 128 sequences (8,192" in line for line in sheet) == times
            await stop_training(leading.term, StopTraining())


async def test_a_daemon_tries_what_it_knows_and_nothing_else(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one)
        commands = alone_with(one, one._begin_term(1))
        before = one.replica.ledger.head()
        tries = {"verb": "cluster.rename", "arguments": {"name": "attic"}}
        assert (await commands.execute("dry_run", tries))["tried"] == "cluster.rename"
        refused = {"verb": "train.start", "arguments": {"model": "7m", "source": {}}}
        with pytest.raises(NotFoundError):
            await commands.execute("dry_run", refused)
        assert one.replica.ledger.head() == before
        with pytest.raises(UsageError, match="dry_run can't be tried"):
            await commands.execute("dry_run", {"verb": "dry_run", "arguments": {}})


async def test_a_data_set_that_isn_t_ready_can_t_be_trained_on(tmp_path: Path) -> None:
    async with leads(tmp_path, data_asked()) as leading:
        assert "isn't ready yet" in (await refusal(leading)).message
        await leading.term.record(
            CycleFailed(CYCLE, "empty-source", "the folder is empty", "fill it")
        )
        error = await refusal(leading)
        assert (error.message, error.hint) == (
            "the data set letters was never made: the folder is empty", "fill it",
        )  # fmt: skip


async def test_without_a_library_nobody_trains(tmp_path: Path) -> None:
    async with leads(tmp_path, data_asked(), MADE, engines=()) as leading:
        assert isinstance(await refusal(leading), MissingExtraError)


async def test_machines_train_one_thing_at_a_time(tmp_path: Path) -> None:
    async with leads(tmp_path, data_asked(), MADE, training()) as leading:
        assert isinstance(await refusal(leading), ConflictError)
        with pytest.raises(ConflictError, match="training letters"):
            await resume_training(leading.term, ResumeTraining())


async def test_a_cycle_and_a_run_keep_each_other_from_starting(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(training(),))
        one.leadership._leading = one._begin_term(1)
        leading = one._begin_term(1)
        with pytest.raises(ConflictError, match="training letters"):
            await start_cycle(leading, StartCycle(domain_name="", domain_yaml=""))
    async with leads(tmp_path / "other", started()) as leading:
        assert "on python is running" in (await refusal(leading)).message


async def test_a_run_is_stopped_and_goes_on(tmp_path: Path) -> None:
    async with leads(tmp_path, data_asked(), MADE, training()) as leading:
        run = leading.term.cycle(CYCLE)
        with pytest.raises(NotFoundError, match="no training run is called poems"):
            await stop_training(leading.term, StopTraining.read({"train": "poems"}))
        assert not run.has_nothing_to_do
        assert await tried(with_term(stop_training), leading, StopTraining()) == CYCLE
        assert (await stop_training(leading.term, StopTraining()))["train"] == CYCLE
        assert run.has_nothing_to_do
        with pytest.raises(NotFoundError, match="no training is running") as refused:
            await stop_training(leading.term, StopTraining())
        resume = f"jupiterctl train start --resume {short(CYCLE)} goes on with "
        assert refused.value.hint.startswith(resume)
        assert await tried(with_term(resume_training), leading, ResumeTraining()) == CYCLE
        assert (await resume_training(leading.term, ResumeTraining.read({"train": "letters"})))[
            "train"
        ] == CYCLE
        assert not run.has_nothing_to_do


async def test_islands_are_stopped_and_go_on_with_their_run(tmp_path: Path) -> None:
    parts = [
        replace(training(f"letters/{number}"), cycle=CycleId(f"{number}" * 16), parent=CYCLE)
        for number in (1, 2, 3)
    ]
    lost = CycleFailed(parts[2].cycle, "work-failed", "its machine is broken", "")
    async with leads(tmp_path, data_asked(), MADE, training(), *parts, lost) as leading:
        cycles = leading.term.state.cycles
        with pytest.raises(ConflictError, match="training letters"):
            await resume_training(leading.term, ResumeTraining())
        entries = len(leading.term.replica.ledger)
        assert (await stop_training(leading.term, StopTraining()))["train"] == CYCLE
        assert len(leading.term.replica.ledger) == entries + 1
        assert all(cycle.has_nothing_to_do for cycle in cycles.values())
        assert (await resume_training(leading.term, ResumeTraining()))["train"] == CYCLE
        assert [cycles[part.cycle].has_nothing_to_do for part in parts] == [False, False, True]


async def test_a_run_that_failed_goes_on_with_the_islands_that_failed_with_it(
    tmp_path: Path,
) -> None:
    parts = [
        replace(training(f"letters/{number}"), cycle=CycleId(f"{number}" * 16), parent=CYCLE)
        for number in (1, 2)
    ]
    why = ("rank-failed", "no device is called eth9", "")
    own = CycleFailed(parts[1].cycle, "work-failed", "its machine is broken", "")
    failures = [own, CycleFailed(parts[0].cycle, *why), CycleFailed(CYCLE, *why)]
    async with leads(tmp_path, data_asked(), MADE, training(), *parts, *failures) as leading:
        cycles, resume = leading.term.state.cycles, ResumeTraining.read({"train": "letters"})
        assert cycles[CYCLE].failed is not None
        assert await tried(with_term(resume_training), leading, resume) == CYCLE
        assert (await resume_training(leading.term, resume))["train"] == CYCLE
        assert cycles[CYCLE].failed is None
        assert [cycles[part.cycle].has_nothing_to_do for part in parts] == [False, True]
        assert not cycles[CYCLE].has_nothing_to_do


async def test_there_is_nothing_to_resume_without_a_run_that_was_stopped(tmp_path: Path) -> None:
    done = (checkpoint("k1", is_final=True), round_over("k1", verdict=""))
    async with leads(tmp_path, data_asked(), MADE) as leading:
        with pytest.raises(NotFoundError, match="no training run to resume"):
            await resume_training(leading.term, ResumeTraining.read({"train": "letters"}))
        await leading.term.record(training(), *done)
        with pytest.raises(NotFoundError, match="no training run to resume"):
            await resume_training(leading.term, ResumeTraining())
        with pytest.raises(ConflictError, match="it is finished"):
            await resume_training(leading.term, ResumeTraining.read({"train": CYCLE}))


async def test_two_data_sets_don_t_share_a_name(tmp_path: Path) -> None:
    async with leads(tmp_path) as leading:
        first = await prepare_data(leading.term, PrepareData.read(FOLDER))
        with pytest.raises(ConflictError, match="there is a data set called letters"):
            await prepare_data(leading.term, PrepareData.read(FOLDER))
        failed = CycleFailed(CycleId(first["data"]), "empty-source", "nothing there", "")
        await leading.term.record(failed)
        assert (await prepare_data(leading.term, PrepareData.read(FOLDER)))["data"] != first["data"]


async def test_a_data_set_may_take_another_s_tokenizer(tmp_path: Path) -> None:
    async with leads(tmp_path, data_asked(), MADE) as leading:
        done = await prepare_data(
            leading.term, PrepareData.read({**FOLDER, "name": "poems", "tokenizer": "letters"})
        )
        asked = leading.term.cycle(CycleId(done["data"])).requested
        assert asked is not None
        assert asked.tokenizer == "7" * 64


async def test_what_lies_on_the_hub_may_be_read_by_anybody(tmp_path: Path) -> None:
    async with leads(tmp_path) as leading:
        source = {"kind": "hugging_face", "path": "wikimedia/wikipedia", "subset": "20231101.es"}
        done = await prepare_data(
            leading.term, PrepareData.read({"source": source, "name": "wikipedia", "node": "n"})
        )
        asked = leading.term.cycle(CycleId(done["data"])).requested
        assert asked is not None
        assert asked.node == ""


def brought(folder: Path, *, mark: str = "<end>") -> Path:
    """A folder of weights with a tokenizer: nothing of them is read but its files."""
    folder.mkdir(parents=True)
    cut = {"model": {"vocab": {"a": 0, mark: 1}}, "added_tokens": [{"id": 1, "content": mark}]}
    (folder / "tokenizer.json").write_text(json.dumps(cut))
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": mark}))
    (folder / "model.safetensors").write_bytes(b"")
    return folder


async def test_weights_train_on_what_their_own_tokenizer_has_cut(tmp_path: Path) -> None:
    config = {"model_type": "gpt2", "vocab_size": 320, "n_positions": 128}
    config |= {"n_embd": 32, "n_layer": 2, "n_head": 2}
    own, other = brought(tmp_path / "own"), brought(tmp_path / "other", mark="<stop>")
    bare = brought(tmp_path / "bare")
    (bare / "tokenizer.json").unlink()
    asked = {"model": "mine", "config": json.dumps(config), "settings": {"seq_len": 64}}
    async with leads(tmp_path / "node", data_asked()) as leading:
        cut_by = leading.reach.artifact_cache.store.ingest(brought(tmp_path / "cut"))
        made = replace(MADE, outputs={**MADE.outputs, "tokenizer": cut_by})
        await leading.term.record(made)

        async def told(folder: Path, **more: Any) -> dict[str, Any]:
            given = {**asked, **more, "weights_folder": str(folder)}
            return (await training_without_copying(StartTraining.read(given))).to_plain()

        error = await refusal(leading, **await told(other))
        assert "the data set letters was cut by another tokenizer than that of mine" in str(error)
        error = await refusal(leading, **await told(bare, **FOLDER))
        assert "mine holds weights, but no tokenizer" in str(error)
        wide = brought(tmp_path / "wide")
        text = (wide / "tokenizer.json").read_text().replace('"a": 0', '"a": 320')
        (wide / "tokenizer.json").write_text(text)
        error = await refusal(leading, **await told(wide, **FOLDER))
        assert "the tokenizer of mine has 321 kinds of tokens, and its weights know 320" in str(
            error
        )
        lines = (
            await start_training(
                leading, StartTraining.read({"data": "letters", **await told(bare)})
            )
        )["sheet"]
        assert "mine has no tokenizer to compare with that of letters" in lines
        await stop_training(leading.term, StopTraining())
        lines = (
            await start_training(
                leading, StartTraining.read({"data": "letters", **await told(own)})
            )
        )["sheet"]
        assert not [line for line in lines if "tokenizer" in line]
        await stop_training(leading.term, StopTraining())
        done = await start_training(leading, StartTraining.read(await told(own, **FOLDER)))
        requested = leading.term.cycle(CycleId(done["train"])).requested
        assert requested is not None
        assert requested.tokenizer == NOT_COPIED, "the artifact of the model, as it came"
