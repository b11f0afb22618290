"""The task `draw_weights`: the first weights of a model, as a folder that every engine begins with.

Owns the folder. Doesn't know how weights are drawn (`first_weights`). Whoever trains alone draws
them itself; islands must begin alike to the last bit, and machines don't draw alike.

inputs: tokenizer
params: shape, plan
outputs: weights, an ordinary model folder
"""

from jupiterd.cycle.training.plan import ModelShape, TrainPlan
from jupiterd.protocol.frames import TaskFinished
from jupiterd.workers.link import Task
from jupiterd.workers.train.checkpoints.checkpoint import write_model
from jupiterd.workers.train.job import end_token
from jupiterd.workers.train.model_config import model_config
from jupiterd.workers.train.torch.torch_model import make_model, named_parameters

OUTPUT = "weights"


def run(task: Task) -> TaskFinished:
    """Do the task that a daemon gave."""
    shape = ModelShape.from_plain(task.params["shape"])
    plan = TrainPlan.from_plain(task.params["plan"])
    tokenizer = task.inputs["tokenizer"]
    end = end_token(tokenizer)
    drawn = named_parameters(make_model(shape, plan.seed, end))
    weights = {name: parameter.detach().numpy() for name, parameter in drawn.items()}
    write_model(task.output_dir / OUTPUT, model_config(shape, end), weights, tokenizer)
    count = sum(values.size for values in weights.values())
    return TaskFinished({OUTPUT: OUTPUT}, {"parameters": count})
