"""The size 1m, and its plan."""

from jupiterd.cycle.training.plan import TrainPlan, derive, parse_model
from jupiterd.locations import config_folder

ONE_MILLION = parse_model((config_folder() / "models" / "1m.yaml").read_text())


def plan_of_one_million() -> TrainPlan:
    return derive(ONE_MILLION, 1)
