PLAN = {
    "schema": "jupiter/v1",
    "done": False,
    "left": {"id": "1" * 32, "name": "home", "nodes": ["alpha", "beta\x1b[2J"]},
    "cycles": 2,
    "founded": None,
}
LEFT = PLAN | {"done": True, "founded": {"id": "2" * 32, "name": "gamma"}}


def test_without_a_terminal_and_without_yes_it_is_only_told_what_would_come_of_it(daemon, ctl):
    daemon.results["cluster.leave"] = PLAN
    for more in ([], ["--dry-run"], ["--dry-run", "--yes"]):
        ran = ctl("cluster", "leave", *more)
        assert ran.exit_code == 0
        assert "home (11111111) goes on without this machine: alpha, beta" in ran.out
        assert "takes 2 pieces of work along" in ran.out
        assert "\x1b" not in ran.out
        assert ran.out.splitlines()[-1] == "nothing was changed; add --yes to leave it"
    assert daemon.executed == [("cluster.leave", {"dry_run": True})] * 3


def test_with_yes_it_is_done_and_what_comes_next_is_said(daemon, ctl):
    daemon.results["cluster.leave"] = LEFT
    ran = ctl("cluster", "leave", "--yes")
    assert daemon.executed == [("cluster.leave", {})]
    assert "gamma (22222222) is its own, with 2 pieces of work" in ran.out
    assert "jupiterctl cluster merge 22222222 --token -" in ran.out
