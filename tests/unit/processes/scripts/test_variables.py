from jupiterd.processes.scripts.variables import differences, telling


def test_what_changes_a_training_is_told_and_no_secret():
    told = telling({
        "HF_HOME": "/a", "HF_TOKEN": "x", "NCCL_DEBUG": "INFO", "HOME": "/me", "MY_KEY": "x",
        "ACCELERATE_API_KEY": "x", "TOKENIZERS_PARALLELISM": "false", "HTTPS_PROXY": "x:y@z",
        "OMP_NUM_THREADS": "2" * 5000,
    })  # fmt: skip
    assert set(told) == {"HF_HOME", "NCCL_DEBUG", "TOKENIZERS_PARALLELISM", "OMP_NUM_THREADS"}
    assert len(told["OMP_NUM_THREADS"]) == 1024


def test_differences_are_told_by_machine():
    machines = {"a": {"HF_HOME": "/x"}, "b": {"HF_HOME": "/x"}, "c": {"NCCL_DEBUG": ""}}
    assert differences(machines) == [
        "HF_HOME differs: /x on a and b, not set on c",
        "NCCL_DEBUG differs: not set on a and b, empty on c",
    ]
    assert differences(machines, {"HF_HOME", "NCCL_DEBUG"}) == []


def test_what_another_machine_tells_is_one_harmless_line():
    (line,) = differences({"a\x1b[2J": {"HF_HOME": "\x1b]0;x\x07" + "y" * 99}, "b": {}})
    assert "\x1b" not in line
    assert len(line) < 140
    assert differences({"a": {"MY_TOKEN": "x"}, "b": {}}) == []  # it may tell what it likes
