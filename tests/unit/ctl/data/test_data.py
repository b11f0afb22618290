import json

import pytest

from tests.support.ctl.documents import DATA, STATUS, WHY, audit


@pytest.fixture
def daemon(daemon):
    daemon.documents["data"] = {"schema": "jupiter/v1", "data": [DATA]}
    daemon.documents["audit"] = {"schema": "jupiter/v1", "audit": [audit()]}
    daemon.results["data.prepare"] = {"data": DATA["id"], "name": "letters"}
    return daemon


@pytest.fixture
def letters(tmp_path):
    folder = tmp_path / "dear letters"
    folder.mkdir()
    (folder / "one.txt").write_text("dear all")
    return folder


def test_text_is_made_into_a_data_set_where_it_lies(daemon, ctl, letters):
    ran = ctl("data", "prepare", str(letters), "--max-tokens", "1000", "--vocab-size", "300")
    assert (ran.exit_code, ran.err) == (0, "")
    assert ran.out.splitlines()[0] == "data set letters (decade00) is being made"
    assert daemon.executed == [
        (
            "data.prepare",
            {
                "source": {
                    "kind": "folder",
                    "path": str(letters),
                    "max_tokens": 1000,
                    "vocab_size": 300,
                },
                "name": "dear-letters",
                "node": STATUS["node"]["id"],
            },
        )
    ]


def test_a_tokenizer_in_a_folder_is_named_by_its_path(daemon, ctl, letters):
    ctl("data", "prepare", str(letters), "--tokenizer", str(letters))
    assert daemon.executed[0][1]["source"]["tokenizer_path"] == str(letters)


def test_waiting_ends_with_what_was_made(daemon, ctl, letters):
    daemon.watched.put({"id": DATA["id"], "kind": "data", "state": "finished", "phases": []})
    ran = ctl("data", "prepare", str(letters), "--wait")
    assert (ran.exit_code, ran.err) == (0, "")
    assert ran.out.splitlines()[-3:] == ["data: letters", "tokens: 29,640", f"shards: {'5' * 64}"]


def test_waiting_tells_a_failure(daemon, ctl, letters):
    failure = {"code": "empty-source", "message": "no text", "hint": "write some"}
    daemon.watched.put(
        {"id": DATA["id"], "kind": "data", "state": "failed", "failure": failure, "phases": []}
    )
    ran = ctl("data", "prepare", str(letters), "--wait")
    assert ran.exit_code == 6
    assert "the data set failed: no text" in ran.err


def test_the_list_shows_what_there_is(daemon, ctl, golden):
    golden("data_list.txt", ctl("data", "list").out)
    assert json.loads(ctl("data", "list", "-o", "json").out)["data"][0]["tokens"] == 29640
    daemon.documents["data"]["data"] = []
    assert ctl("data", "list").out == "no data set has been made\n"


def test_the_data_of_rounds_is_listed_with_where_it_comes_from(daemon, ctl, golden):
    sources = {"stdlib": 590, "docs": 12, "forum": 3, "\x1b[2J": 1, "": 1}
    counts = {"tokens": 1234567, "documents": 607, "synthetic_documents": 17}
    daemon.documents["data"]["rounds"] = [
        {"name": "python", "round": 2, "shards": "5" * 64, "contents": None},
        {"name": "python", "round": 1, "shards": "6" * 64, **counts,
         "contents": {"source": sources, "license": {"PSF-2.0": 607}}},
    ]  # fmt: skip
    golden("data_list_rounds.txt", ctl("data", "list").out)
    daemon.documents["data"]["data"] = []
    assert ctl("data", "list").out.startswith("ROUND ")


def test_an_audit_that_holds_exits_with_0(daemon, ctl, golden):
    ran = ctl("data", "audit")
    assert (ran.exit_code, ran.err) == (0, "")
    golden("data_audit.txt", ran.out)


def test_an_audit_that_fails_exits_with_8_and_says_what_is_wrong(daemon, ctl, golden):
    wrong = audit("no checkpoint contains [40, 50), before checkpoint 491c317c")
    daemon.documents["audit"]["audit"] = [audit(), wrong]
    ran = ctl("data", "audit")
    assert ran.exit_code == 8
    golden("data_audit_wrong.txt", ran.out + ran.err)


def test_nothing_trained_is_nothing_to_prove(daemon, ctl):
    daemon.documents["audit"]["audit"] = []
    ran = ctl("data", "audit", "facade")
    assert (ran.exit_code, ran.out) == (0, "nothing has been trained yet\n")


def test_the_help_names_every_option(ctl, golden):
    golden("data_prepare_help.txt", ctl("data", "prepare", "--help").out)


def test_where_a_token_comes_from_is_told_up_to_the_real_sample(daemon, ctl, golden):
    daemon.documents["why"] = {"schema": "jupiter/v1", "why": WHY}
    ran = ctl("data", "why", "python:12001")
    assert (ran.exit_code, ran.err) == (0, "")
    assert "\x1b" not in ran.out
    golden("data_why.txt", ran.out)
    assert json.loads(ctl("data", "why", "abababab", "-o", "json").out)["why"] == WHY


PURGED = {"source": "docs", "domain": "python", "cycle": "", "already": False}


def test_a_data_set_is_stopped_and_removed_and_removing_insists_on_yes(daemon, ctl):
    told = {"schema": "jupiter/v1", "data": "facade00" * 2, "name": "letters"}
    daemon.results |= {"data.stop": told, "data.remove": told}
    assert (
        ctl("data", "stop", "--yes").out == "data set letters (facade00) is no longer being made\n"
    )
    refused = ctl("data", "remove", "letters")
    assert "say so with --yes" in refused.err
    ran = ctl("data", "remove", "letters", "--yes")
    assert ran.out == "data set letters (facade00) is removed; its name is free\n"
    assert daemon.executed == [("data.stop", {"data": ""}), ("data.remove", {"data": "letters"})]


def test_a_purge_says_what_it_means_and_insists_on_yes(daemon, ctl):
    daemon.results["data.purge"] = PURGED
    refused = ctl("data", "purge", "--source", "docs")
    assert (refused.exit_code, daemon.executed) == (2, [])
    assert "--yes" in refused.err
    ran = ctl("data", "purge", "--source", "docs", "--domain", "python", "--yes")
    assert (ran.exit_code, ran.err) == (0, "")
    assert daemon.executed == [("data.purge", {"source": "docs", "domain": "python"})]
    assert ran.out.splitlines() == [
        "source docs is purged: every cycle on python packs nothing of it any more",
        "what was made from it is left out too, and so is what is collected later",
        "what earlier rounds made of it stays: their samples, tokenizers and models",
        "jupiterctl data audit shows the proof once a round was packed",
    ]


def test_a_purge_is_of_a_domain_or_of_a_cycle(daemon, ctl):
    given = ("--source", "docs", "--domain", "python", "--cycle", "ab", "--yes")
    assert ctl("data", "purge", *given).exit_code == 2
    assert daemon.executed == []


def proof(round_number: int, left_out: int = 0, *, collected: bool = True) -> dict[str, object]:
    return {"round": round_number, "samples": 0, "left_out": left_out, "collected": collected}


def test_the_proof_of_a_purge_stands_in_the_audit(daemon, ctl):
    proofs = [
        {"source": "docs", "rounds": [proof(2, left_out=1200), proof(3, collected=False)]},
        {"source": "forum", "rounds": []},
        {"source": "https://a.og", "rounds": [proof(2)]},
    ]
    daemon.documents["audit"] = {"audit": [audit() | {"purged": proofs}]}
    out = ctl("data", "audit").out
    assert "  source docs: purged, 0 samples in round 2; 1,200 left out\n" in out
    assert "  source docs: purged, 0 samples in round 3; not collected any more\n" in out
    assert "0 samples in round 2; there was nothing of it to leave out: look how" in out
    assert "  source forum: purged; no round was packed since\n" in out
