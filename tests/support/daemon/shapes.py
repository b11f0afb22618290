"""A model's shape for tests that train nothing."""

from jupiterd.cycle.training.plan import ModelShape, parse_model
from jupiterd.locations import config_folder


def tiny_shape() -> ModelShape:
    return parse_model((config_folder() / "models" / "1m.yaml").read_text(encoding="utf-8"))
