"""The task `draw_weights`: the first weights of a model, as a folder that every engine begins with.

Owns the folder, which is written tensor by tensor: the machine may have no room for all of them.
Doesn't know how weights are drawn (`first_weights`). Whoever trains alone draws them itself;
islands must begin alike to the last bit, and machines don't draw alike.

inputs: tokenizer
params: shape, plan
outputs: weights, an ordinary model folder
"""

import math

from jupiterd.cycle.training.plan import ModelShape, TrainPlan
from jupiterd.errors import UsageError
from jupiterd.protocol.frames import TaskFinished
from jupiterd.workers.link import Task
from jupiterd.workers.tensor_writer import save_each
from jupiterd.workers.train.architectures.folder_weights import names_in_files
from jupiterd.workers.train.architectures.skeleton import skeleton
from jupiterd.workers.train.checkpoints.checkpoint import write_model, write_texts
from jupiterd.workers.train.checkpoints.checkpoint_format import ModelFormat
from jupiterd.workers.train.first_weights import first_weights
from jupiterd.workers.train.job import end_token
from jupiterd.workers.train.model_config import model_config

OUTPUT = "weights"


def run(task: Task) -> TaskFinished:
    """Do the task that a daemon gave."""
    shape = ModelShape.from_plain(task.params["shape"])
    plan = TrainPlan.from_plain(task.params["plan"])
    tokenizer = task.inputs["tokenizer"]
    config = model_config(shape, end_token(tokenizer))
    shapes = skeleton(config).shapes
    folder, drawn = task.output_dir / OUTPUT, first_weights(shapes, plan.seed)
    try:
        named = names_in_files(config, shapes)
    except UsageError:  # its files hold tensors in other pieces, which takes all of them
        write_model(folder, config, drawn, tokenizer)
    else:
        form = ModelFormat(config)
        write_texts(folder, form, tokenizer)
        of_files = {named[name]: shapes[name] for name in shapes}
        save_each(((named[name], drawn[name]) for name in shapes), of_files, folder / form.file)
    return TaskFinished({OUTPUT: OUTPUT}, {"parameters": sum(map(math.prod, shapes.values()))})
