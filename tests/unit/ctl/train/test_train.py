import json

import pytest

from jupiterd.errors import ConflictError, NotFoundError
from tests.support.ctl.documents import ALPHA, STATUS, TRAINED, train
from tests.support.ctl.model_folder import write_folder
from tests.unit.ctl.test_dry_run import NODES

pytestmark = pytest.mark.usefixtures("warm_looks")

RECORDED = {
    "schema": "jupiter/v1",
    "train": "facade0000000001",
    "name": "letters",
    "model": "1m",
    "parameters": 1_131_392,
    "ranks": 2,
    "batch_size": 1,
    "gradient_accumulation_steps": 32,
    "batch_sequences": 64,
    "seq_len": 1024,
}


def layout(title, rate, useful=None, **more):
    told = {"title": title, "tokens_per_s": rate, "useful_tokens_per_s": useful or rate}
    return {**told, "inner_steps": None, "is_choosable": True, "unmeasured": [], **more}


LAYOUTS = {
    "chosen": layout("alpha alone on torch", 71137.2)
    | {"why": "with others 5.9 s of each step of 6.8 s would go over the wire"},
    "unasked": "alpha, beta together, all-reduce on torch",
    "alternatives": [
        layout(
            "2 islands: alpha (torch), beta (mlx)", 139795.0, 126064.0,
            inner_steps=75, is_choosable=False,
        ),
        layout("alpha, beta together, all-reduce on torch", 45548.0),
        layout("gamma alone on mlx", None, unmeasured=["gamma"]),
    ],
    "not_shown": 3,
    "generators": ["pi"],
}  # fmt: skip


@pytest.fixture
def daemon(daemon):
    daemon.documents["train"] = {"schema": "jupiter/v1", "train": train()}
    daemon.results["train.start"] = RECORDED
    daemon.results["train.resume"] = {"train": RECORDED["train"], "name": "letters"}
    return daemon


@pytest.fixture
def letters(tmp_path):
    folder = tmp_path / "letters"
    folder.mkdir()
    (folder / "one.txt").write_text("dear all")
    return folder


def test_a_folder_of_text_is_sent_with_the_machine_it_lies_on(daemon, ctl, letters):
    ran = ctl("train", "start", "--data", str(letters), "--model", "1m")
    assert (ran.exit_code, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "training facade00 started: 1m on letters",
        "parameters: 1,131,392",
        "batch: 1 x 32 x 2 ranks = 64 sequences of 1,024 tokens",
        "follow it with: jupiterctl train watch",
    ]
    assert daemon.executed == [
        (
            "train.start",
            {
                "source": {"kind": "folder", "path": str(letters)},
                "name": "letters",
                "node": STATUS["node"]["id"],
                "model": "1m",
                "settings": {},
            },
        )
    ]
    assert STATUS["node"]["id"] == ALPHA


def test_a_folder_at_home_whose_name_is_a_number_is_text_and_no_cycle_s_round(
    daemon, ctl, letters, monkeypatch
):
    monkeypatch.setenv("HOME", str(letters.parent))
    letters.rename(letters.parent / "2024")
    assert ctl("train", "start", "--data", "~/2024", "--model", "1m").exit_code == 0
    ((_, asked),) = daemon.executed
    assert asked["source"]["path"] == str(letters.parent / "2024")


def test_the_best_layout_is_told_with_the_others_beside_it(daemon, ctl, letters, golden):
    daemon.results["train.start"] = {**RECORDED, "layouts": LAYOUTS}
    ran = ctl("train", "start", "--data", str(letters), "--model", "1m")
    golden("train_start_layouts.txt", ran.out)


def test_before_anything_was_measured_no_layout_is_called_the_best(daemon, ctl, letters):
    unknown = layout("alpha alone on torch", None, unmeasured=["alpha"])
    unknown["why"] = "nothing is compared before that"
    told = {"chosen": unknown, "unasked": unknown["title"], "alternatives": []}
    daemon.results["train.start"] = {**RECORDED, "layouts": told}
    lines = ctl("train", "start", "--data", str(letters), "--model", "1m").out.splitlines()
    assert lines[-2] == (
        "Layout: alpha alone on torch, speed N/A, never measured with this model: alpha; "
        "nothing is compared before that"
    )


def test_names_of_others_don_t_steer_the_terminal(daemon, ctl, letters):
    odd = {**LAYOUTS, "generators": ["\x1b[2Jpi"]}
    daemon.results["train.start"] = {**RECORDED, "layouts": odd}
    assert "\x1b" not in ctl("train", "start", "--data", str(letters), "--model", "1m").out


def test_every_option_reaches_the_daemon_by_its_name(daemon, ctl, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = (
        "--engine torch --nodes alpha,beta --max-steps 9 --epochs 2 --seq-len 64 --batch-size 3 "
        "--gradient-accumulation-steps 4 --precision bf16 --gradient-checkpointing on "
        "--attention sdpa --document-masks on --optimizer muon --lr 0.001 --weight-decay 0 --seed 7"
        " --micro-batch 2"
    )
    ran = ctl("train", "start", "--data", "letters", "--model", "25m", *options.split())
    assert (ran.exit_code, ran.err) == (0, "")
    assert daemon.executed[0][1] == {
        "data": "letters",
        "model": "25m",
        "engine": "torch",
        "nodes": "alpha,beta",
        "settings": {
            "max_steps": 9,
            "epochs": 2,
            "seq_len": 64,
            "batch_size": 3,
            "gradient_accumulation_steps": 4,
            "precision": "bf16",
            "gradient_checkpointing": "on",
            "attention": "sdpa",
            "document_masks": "on",
            "optimizer": "muon",
            "learning_rate": 0.001,
            "weight_decay": 0.0,
            "seed": 7,
            "fixed_micro_batch": 2,
        },
    }


def test_what_the_loss_counts_is_said_of_the_text(daemon, ctl, tmp_path):
    daemon.documents["status"] = STATUS | {"nodes": NODES}
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"prompt": "What is 1?", "completion": "It is 1."}\n' * 2)
    start = "train", "start", "--data", str(rows), "--model", "1m", "--loss-on", "all"
    assert ctl(*start).exit_code == 0
    asked = daemon.executed[0][1]
    assert asked["source"] == {"kind": "folder", "path": str(rows), "loss_on": "all"}
    assert "loss_on" not in asked["settings"]
    assert "of 2 conversations" in ctl(*start, "--dry-run").out


def begin(ctl, *options):
    return ctl("train", "start", "--data", "letters", "--model", "1m", *options)


def test_the_curves_are_seen_where_people_want_them(daemon, ctl, tmp_path, state_dir):
    link = tmp_path / "new" / "curves"
    ran = begin(ctl, "--log-dir", str(link))
    assert (ran.exit_code, ran.err) == (0, "")
    assert f"curves: {link}" in ran.out.splitlines()
    assert "log_dir" not in daemon.executed[0][1]["settings"]
    worker_writes_to = state_dir / "logs" / "curves" / RECORDED["train"][:8]
    (worker_writes_to / "metrics.jsonl").write_text("{}")
    assert (link / "metrics.jsonl").read_text() == "{}"
    resumed = ctl("train", "start", "--resume", "--log-dir", str(link))
    assert (resumed.exit_code, resumed.err) == (0, "")


@pytest.mark.parametrize("what", ["folder", "file", "link"])
def test_what_is_there_already_is_left_alone(daemon, ctl, tmp_path, what):
    taken = tmp_path / "curves"
    match what:
        case "folder":
            taken.mkdir()
        case "file":
            taken.write_text("mine")
        case _:
            taken.symlink_to(tmp_path / "elsewhere")
    ran = begin(ctl, "--log-dir", str(taken))
    assert ran.exit_code == ConflictError.exit_code
    assert f"there is something else at {taken}" in ran.err
    assert daemon.executed == []


def test_a_path_below_a_file_is_refused_in_one_line(daemon, ctl, tmp_path):
    (tmp_path / "file").write_text("mine")
    ran = begin(ctl, "--log-dir", str(tmp_path / "file" / "curves"))
    assert ran.exit_code == 2
    assert f"--log-dir: can't make {tmp_path / 'file' / 'curves'}" in ran.err
    assert daemon.executed == []


def test_waiting_shows_how_it_goes_and_ends_with_the_last_lines(daemon, ctl, golden, letters):
    for document in (train(), TRAINED):
        daemon.watched.put(document)
    ran = ctl("train", "start", "--data", str(letters), "--model", "1m", "--wait")
    assert (ran.exit_code, ran.err) == (0, "")
    golden("train_wait.txt", ran.out)
    assert ran.out.splitlines()[-3:] == [
        "verdict: -",
        "val_bpb: 2.2500",
        "model: /state/runs/letters-fa/model",
    ]


@pytest.mark.parametrize(("more", "status"), [((), 1), (("--accept-worse",), 0)])
def test_weights_that_got_worse_end_the_wait_with_a_failure_unless_that_is_accepted(
    daemon, ctl, letters, more, status
):
    scores = {"bits_per_byte_before": 1.109, "bits_per_byte": 4.67, "best_bits_per_byte": 1.109}
    daemon.watched.put(TRAINED | scores | {"best_step": 0, "ended_worse": True})
    ran = ctl("train", "start", "--data", str(letters), "--model", "1m", "--wait", *more)
    assert ran.exit_code == status
    assert "it ended worse than it began, at 4.6700: the model is the one that you gave" in ran.out
    assert ran.out.splitlines()[-3] == "verdict: WORSE"
    assert ("ended worse than it began" in ran.err) == bool(status)


def test_the_model_is_waited_for_until_it_is_on_this_machine(daemon, ctl):
    for document in (TRAINED | {"model": None}, TRAINED):
        daemon.watched.put(document)
    ran = ctl("train", "watch")
    assert ran.out.splitlines()[-1] == "model: /state/runs/letters-fa/model"


def test_a_failure_is_told_with_its_hint(daemon, ctl, letters):
    failure = {"code": "empty-source", "message": "no text", "hint": "write some"}
    daemon.watched.put(train("failed", failure=failure))
    ran = ctl("train", "start", "--data", str(letters), "--model", "1m", "--wait")
    assert ran.exit_code == 6
    assert ran.err == "jupiterctl: error: the training failed: no text\n\nhint: write some\n"


def test_status_says_why_a_training_failed_and_what_to_do(daemon, ctl):
    failure = {"code": "empty-source", "message": "no\x1b[2J text", "hint": "write some"}
    failed = train("failed", failure=failure)
    daemon.documents["train"] = {"schema": "jupiter/v1", "train": failed}
    _, why, hint, *more = ctl("train", "status").out.splitlines()
    assert (why, hint) == ("failed: no?[2J text", "hint: write some")
    assert "go on with it: jupiterctl train start --resume facade00" in more


def test_a_run_that_was_stopped_says_how_it_goes_on(daemon, ctl):
    daemon.watched.put(train("stopped"))
    ran = ctl("train", "watch")
    assert ran.exit_code == 1
    assert "training facade00 was stopped" in ran.err
    assert "train start --resume" in ran.err


def test_status_of_one_that_was_stopped_says_so_and_where_its_checkpoints_are(daemon, ctl):
    daemon.documents["train"] = {"schema": "jupiter/v1", "train": train("stopped")}
    told = ctl("train", "status").out.splitlines()
    assert "go on with it: jupiterctl train start --resume facade00" in told
    assert told[-1] == "model: none yet; its checkpoints: jupiterctl model list"


CHECKPOINT = {
    "id": "ab" * 32, "island": None, "round": 1, "step": 40, "tokens": 9, "loss": 2.34567,
    "is_final": False, "on_trunk": True, "copies": ["nuc", "mini\x1b[2J"], "copies_wanted": 2,
}  # fmt: skip


def test_status_of_one_that_rests_says_its_last_step_and_who_has_it(daemon, ctl):
    stopped = train("stopped") | {"step": 40, "loss": 2.34567}
    daemon.documents["train"] = {"schema": "jupiter/v1", "train": stopped}
    assert "last step: 40, loss 2.3457" in ctl("train", "status").out.splitlines(), "nobody has it"
    view = {"run": stopped["id"], "rows": [CHECKPOINT], "more": 0, "silent": 0}
    daemon.documents[f"checkpoints/{stopped['id']}"] = {"checkpoints": view}
    said = "last step: 40, loss 2.3457; its checkpoint abababab is on nuc, mini?[2J"
    assert said in ctl("train", "status").out.splitlines()
    view["rows"] = [CHECKPOINT | {"copies": []}]
    assert "abababab is on no machine in reach" in ctl("train", "status").out
    view["rows"] = []
    daemon.documents["train"] = {"schema": "jupiter/v1", "train": stopped | {"step": 0}}
    assert "last step: none was kept" in ctl("train", "status").out


def test_one_that_failed_has_checkpoints_once_it_has_trained(daemon, ctl):
    failure = {"code": "loss-diverged", "message": "the loss is no number", "hint": "go back"}
    failed = train("failed", failure=failure) | {"step": 40}
    daemon.documents["train"] = {"schema": "jupiter/v1", "train": failed}
    told = ctl("train", "status").out.splitlines()
    assert told[-1] == "model: none yet; its checkpoints: jupiterctl model list"
    begun = train("failed", failure=failure) | {"step": 0}
    daemon.documents["train"] = {"schema": "jupiter/v1", "train": begun}
    assert ctl("train", "status").out.splitlines()[-1] == "model: none"


def test_status_shows_the_run_that_is_named(daemon, ctl):
    daemon.documents["train/letters"] = {"schema": "jupiter/v1", "train": train("stopped")}
    assert "facade00" in ctl("train", "status", "letters").out


@pytest.mark.parametrize(
    "command", [("train", "stop"), ("train", "start", "--resume"), ("cycle", "resume")]
)
def test_a_dry_run_names_what_the_daemon_would_choose(daemon, ctl, command):
    daemon.results["dry_run"] = {"schema": "jupiter/v1", "run": "facade00c0ffee"}
    told = ctl(*command, "--dry-run").out
    assert "N/A" not in told
    assert f"  {command[0]}: facade00" in told


def test_status_shows_the_run(daemon, ctl, golden):
    golden("train_status.txt", ctl("train", "status").out)
    daemon.documents["train"] = {"schema": "jupiter/v1", "train": TRAINED}
    golden("train_status_finished.txt", ctl("train", "status").out)
    assert json.loads(ctl("train", "status", "-o", "json").out)["train"]["val_bpb"] == 2.25
    daemon.documents["train"] = {"schema": "jupiter/v1", "train": None}
    assert ctl("train", "status").out == (
        "no training run has been started; what a cycle trains: jupiterctl cycle status\n"
    )


def test_islands_are_shown_one_by_one(daemon, ctl):
    row = {"nodes": ["a"], "step": 1_240, "tokens_per_s": 900.4, "outer_step": 41}
    islands = [
        {**row, "island": 1, "engine": "mlx", "state": "training"},
        {**row, "island": 2, "engine": "torch", "state": "away", "tokens_per_s": None},
    ]
    shown = train(islands=islands, outer_steps=41, inner_steps=57)
    daemon.documents["train"] = {"schema": "jupiter/v1", "train": shown}
    assert ctl("train", "status").out.splitlines()[1:] == [
        "2 islands, 41 outer steps taken, one every 57 steps",
        "  island 1 (mlx, one machine) trains, step 1,240, 900 tokens/s",
        "  island 2 (torch, one machine) is away, step 1,240",
        "predicted 9,930 tokens/s, measured 10,240: 3 % too low",
    ]


def test_what_is_said_of_islands_is_asked_for(daemon, ctl, letters):
    given = ("--islands", "on", "--sync-every", "50", "--outer", "average", "--ways", "bf16")
    ran = ctl("train", "start", "--data", str(letters), "--model", "1m", *given)
    assert ran.exit_code == 0
    ((_, asked),) = daemon.executed
    wanted = {"islands": "on", "sync_every": 50, "outer": "average", "ways": "bf16"}
    assert asked["settings"] == wanted


@pytest.mark.parametrize("start", [("train", "start"), ("cycle", "start"), ("cycle", "plan")])
def test_how_islands_train_is_not_said_where_there_are_none(daemon, ctl, start: tuple[str, ...]):
    of_cycle = ("--domain", "python") if start[0] == "cycle" else ()
    ran = ctl(*start, *of_cycle, "--islands", "off", "--sync-every", "50")
    assert ran.exit_code == 2
    assert ran.err == (
        "jupiterctl: error: --sync-every says how islands train, and --islands off says that "
        "there are none\n\nhint: leave one of the two out\n"
    )
    assert not daemon.executed


def test_the_cluster_s_status_has_a_line_for_it(daemon, ctl):
    daemon.documents["status"] = STATUS | {"train": train()}
    assert "\ntrain    letters (facade00): running, train 120 of 600 steps" in ctl("status").out


def test_a_run_is_resumed_as_it_was_asked_for(daemon, ctl):
    assert ctl("train", "start", "--resume").out.splitlines() == [
        "training facade00 goes on",
        "follow it with: jupiterctl train watch",
    ]
    ctl("train", "start", "--resume", "facade")
    assert daemon.executed == [
        ("train.resume", {"train": ""}),
        ("train.resume", {"train": "facade"}),
    ]
    ran = ctl("train", "start", "--resume", "--lr", "0.1")
    assert ran.exit_code == 2
    assert "--lr can't be given" in ran.err


@pytest.mark.parametrize(
    ("arguments", "exit_code", "says"),
    [
        (("--model", "1m"), 2, "missing option --data"),
        (("--data", "letters"), 2, "missing option --model"),
        (("--data", "./nowhere/x/y", "--model", "1m"), 6, "no folder or file"),
        (("--data", "./nowhere", "--model", "1m"), 6, "no folder or file"),
        (("--data", "letters", "--model", "1m", "--timeout", "5"), 2, "--timeout needs --wait"),
        (("--data", "letters", "--model", "1m", "--max-steps", "0"), 2, "max-steps"),
        (("--data", "letters", "--model", "1m", "--precision", "fp8"), 2, "fp8"),
        (("--data", "letters", "--model", "1m", "--loss-on", "all"), 2, "was made already"),
        (("--data", "letters", "--model", "1m", "--field", "body"), 2, "--field is said where"),
    ],
)
def test_what_can_t_be_never_reaches_the_daemon(daemon, ctl, arguments, exit_code, says):
    ran = ctl("train", "start", *arguments)
    assert ran.exit_code == exit_code
    assert says in ran.err
    assert "hint: " in ran.err
    assert daemon.executed == []


def test_which_field_holds_the_text_is_said_of_the_text(daemon, ctl, tmp_path):
    daemon.documents["status"] = STATUS | {"nodes": NODES}
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"meta": {"body": "a text"}}\n' * 3)
    named = ctl("train", "start", "--data", str(rows), "--model", "1m", "--field", "meta.body")
    assert named.exit_code == 0
    assert daemon.executed[0][1]["source"]["field"] == "meta.body"
    assert "field" not in daemon.executed[0][1]["settings"]
    unnamed = ctl("train", "start", "--data", str(rows), "--model", "1m")
    assert "its fields: meta.body" in unnamed.err
    assert "--field NAME" in unnamed.err


def test_an_empty_folder_never_reaches_the_daemon(daemon, ctl, tmp_path):
    ran = ctl("train", "start", "--data", str(tmp_path), "--model", "1m")
    assert (ran.exit_code, daemon.executed) == (6, [])
    assert "is empty" in ran.err


def test_what_the_leader_refuses_is_told_as_it_says_it(daemon, ctl):
    daemon.failure = ConflictError("training letters is running already", "stop it")
    assert ctl("train", "start", "--data", "letters", "--model", "1m").exit_code == 7
    daemon.failure = NotFoundError("no data set is called letters", "list them")
    ran = ctl("train", "start", "--data", "letters", "--model", "1m")
    assert (ran.exit_code, "hint: list them" in ran.err) == (6, True)


def test_a_run_is_stopped(daemon, ctl):
    told = ctl("train", "stop", "facade", "--yes").out
    assert told == (
        "stopped; what it has made stays\ngo on with it: jupiterctl train start --resume facade\n"
    )
    assert daemon.executed == [("train.stop", {"train": "facade"})]


def test_the_help_names_every_option(ctl, golden):
    golden("train_start_help.txt", ctl("train", "start", "--help").out)


@pytest.mark.parametrize("file", ["pytorch_model.bin", "pytorch_model-00001-of-00002.bin", "m.pth"])
def test_weights_that_are_not_read_are_refused_and_not_left_out(daemon, ctl, tmp_path, file):
    write_folder(tmp_path, "config.json", file)
    ran = ctl("train", "start", "--data", "letters", "--model", str(tmp_path))
    assert (ran.exit_code, daemon.executed) == (2, [])
    told, *_, hint = ran.err.splitlines()
    assert told.endswith(f"holds weights as {file}, and only safetensors are read")
    assert "save_pretrained" in hint


def test_a_pickle_beside_safetensors_is_in_nobodys_way(daemon, ctl, tmp_path):
    write_folder(tmp_path, "config.json", "pytorch_model.bin", "model.safetensors")
    assert ctl("train", "start", "--data", "letters", "--model", str(tmp_path)).exit_code == 0


@pytest.mark.parametrize("more", [(), ("--dry-run",)], ids=["done", "tried"])
def test_where_a_folder_and_a_data_set_have_one_name_it_is_said_which_is_taken(
    daemon, ctl, letters, monkeypatch, more
):
    monkeypatch.chdir(letters.parent)
    daemon.documents |= {
        "status": STATUS | {"nodes": NODES},
        "data": {
            "schema": "jupiter/v1",
            "data": [
                {"id": f"da7a000{n}000000a1", "name": "letters", "shards": shards}
                for n, shards in ((1, None), (0, "5a"))
            ],
        },
    }
    said = (
        "Reads the text in ./letters again; the data set that was made of that name is taken by "
        "--data da7a0000"
    )
    start = "train", "start", "--model", "1m", *more, "--data"
    assert said in ctl(*start, "letters").out.splitlines()
    assert "anew" not in ctl(*start, "./letters").out
    assert "anew" not in ctl(*start, "da7a0000").out


def test_that_nothing_can_be_held_out_is_said_as_it_starts(daemon, ctl, tmp_path):
    copies, texts = tmp_path / "copies", tmp_path / "texts"
    for folder in (copies, texts):
        folder.mkdir()
        for number in range(50):
            said = "The same letter to all, in the same words. " if folder is copies else ""
            (folder / f"{number}.txt").write_text(said * 9 or f"{number} other words. " * 9)
    start = "train", "start", "--model", "1m", "--data"
    warning = "Nothing of 50 texts can be held out: all of them are nearly copies of each other"
    assert warning in ctl(*start, str(copies)).out
    assert "held out" not in ctl(*start, str(texts)).out
