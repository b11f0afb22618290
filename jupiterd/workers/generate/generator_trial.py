"""The task `try_generator`: whether a generator answers one short prompt, before anything begins.

Owns the prompt. Keeps nothing: there are no outputs. What can't be loaded, reached or asked ends
the task with its error, as it would end an item later.

inputs: model (unless a server is asked) · params: generator, server, engine, device
"""

from jupiterd.cycle.templates.prompt import Prompt
from jupiterd.protocol.frames import TaskFinished
from jupiterd.workers.generate.engine import Request, Sampling
from jupiterd.workers.generate.engines import open_engine
from jupiterd.workers.generate.server_client import ServerPatience
from jupiterd.workers.link import Task

PROMPT = Prompt("Say hello.", "Hello")
SAMPLING = Sampling(max_tokens=16, temperature=0.0, top_p=1.0)
PATIENCE = ServerPatience(tries=3, silent_s=240.0, is_busy_enough=True)
"""A server may have to load its model first, or have much to do for others: it is there then."""


def run(task: Task) -> TaskFinished:
    """Do the task that a daemon gave."""
    engine = open_engine(task, PATIENCE)
    tokens = sum(written.tokens for _, written in engine.write([Request(PROMPT, 0)], SAMPLING))
    return TaskFinished({}, {"tokens": tokens}, {"generator": str(task.params["generator"])})
