"""What a daemon knows of models that commands fetch from the hub: what it was told, for a while."""

from jupiterd.daemon.catalog.hub_fetches import MAX_FETCHES, SHOWN_S, SILENT_S, HubFetches
from jupiterd.protocol.commands.check_commands import NoteFetch

TOLD = {"name": "org/prose", "done": 5, "total": 9, "bytes_per_s": 2}


def test_a_fetch_is_shown_while_it_goes_on_and_a_moment_after_its_end():
    fetches = HubFetches()
    fetches.note(NoteFetch.read(TOLD), 0.0)
    assert fetches.rows(1.0) == [TOLD | {"state": "fetching"}]
    fetches.note(NoteFetch.read(TOLD | {"done": 9, "ended": "brought"}), 2.0)
    assert fetches.rows(2.0 + SHOWN_S) == [TOLD | {"done": 9, "state": "brought"}]
    assert fetches.rows(3.0 + SHOWN_S) == []


def test_one_of_which_nothing_is_heard_was_cut_off_with_its_command():
    fetches = HubFetches()
    fetches.note(NoteFetch.read(TOLD), 0.0)
    assert fetches.rows(SILENT_S)[0]["state"] == "fetching"
    assert fetches.rows(SILENT_S + 1.0)[0]["state"] == "cut-off"
    assert fetches.rows(SILENT_S + SHOWN_S + 1.0) == []


def test_nobody_fills_the_status_with_names():
    fetches = HubFetches()
    for number in range(2 * MAX_FETCHES):
        name = f"org/{number}\x1b[2J" + "x" * 999
        fetches.note(NoteFetch.read(TOLD | {"name": name, "ended": "what?"}), 0.0)
    rows = fetches.rows(0.0)
    assert len(rows) == MAX_FETCHES
    assert all(len(row["name"]) <= 200 for row in rows)
    assert {row["state"] for row in rows} == {"fetching"}
