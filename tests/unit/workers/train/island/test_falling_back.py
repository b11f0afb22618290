"""An island whose weights became no numbers goes on with those of all, as exactly as it can."""

from pathlib import Path

import numpy as np
import pytest

from jupiterd.cycle.training.engine_options import EngineOptions
from jupiterd.workers.train.island import outer_rounds
from jupiterd.workers.train.island.outer_rounds import OuterRounds
from jupiterd.workers.train.torch.torch_engine import TorchEngine
from tests.support.workers.island_threads import EVERY, Island, plan
from tests.support.workers.outer_leader import OuterLeader
from tests.support.workers.tiny_run import make_inputs


def test_what_bf16_weights_lose_is_that_of_the_weights_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(outer_rounds, "MOMENT_S", 0.2)
    fall_back, step = OuterRounds._fall_back, TorchEngine.step
    taken, off = list[TorchEngine](), list[float]()

    def broken(engine: TorchEngine, *args: object) -> tuple[float, float]:
        taken.append(engine)
        if len(taken) == EVERY + 2:
            engine.load_weights({n: w * np.nan for n, w in engine.weights().items()})
        return step(engine, *args)  # pyright: ignore[reportArgumentType]

    def seen(rounds: OuterRounds) -> None:
        fall_back(rounds)
        state = rounds._island.layout.tensors(rounds._island.state.weights)
        found = rounds._engine.exact_weights()
        off.append(max(float(np.abs(found[name] - state[name]).max()) for name in state))

    monkeypatch.setattr(TorchEngine, "step", broken)
    monkeypatch.setattr(OuterRounds, "_fall_back", seen)
    how = plan().model_copy(update={"options": EngineOptions(weights="bf16")})
    leader = OuterLeader(tmp_path, how, {"a": 2}, EVERY)
    leader.left_out.add((2, "a"))
    ended = Island(leader, "a", make_inputs(tmp_path)).ended()
    assert ended.error is None
    assert len(off) >= 1
    assert max(off) < 1e-5, "what their bf16 weights lack is kept beside them"
