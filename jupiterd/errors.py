"""Every error a user can meet: its code, exit status, gRPC status and hint.

Owns the tree of exceptions and their form on the wire. Doesn't know where any of them is raised.
`JupiterError` (one line and a hint) is the world's fault, `Bug` (with its traceback) is ours.
"""

from collections.abc import Mapping

from jupiterd.exit_codes import ExitCode
from jupiterd.protocol.artifact_errors import BrokenModelError as BrokenModelError
from jupiterd.protocol.artifact_errors import CorruptArtifactError as CorruptArtifactError
from jupiterd.protocol.artifact_errors import CorruptCheckpointError as CorruptCheckpointError
from jupiterd.protocol.artifact_errors import CorruptWeightsError as CorruptWeightsError
from jupiterd.protocol.artifact_errors import UnknownModelError as UnknownModelError
from jupiterd.protocol.error_form import JupiterError
from jupiterd.protocol.serving_errors import BusyError as BusyError
from jupiterd.protocol.serving_errors import EngineLostError as EngineLostError
from jupiterd.protocol.serving_errors import ModelNotServedError as ModelNotServedError
from jupiterd.protocol.serving_errors import PromptTooLongError as PromptTooLongError
from jupiterd.protocol.serving_errors import UnsupportedFieldError as UnsupportedFieldError


class Bug(Exception):  # noqa: N818 - not an error of the user's
    """A broken promise inside Jupiter; never shown as the user's fault."""


class UsageError(JupiterError):
    """The command line is wrong."""

    code = "usage"
    is_permanent = True
    exit_code = ExitCode.USAGE
    grpc_status = "INVALID_ARGUMENT"
    default_hint = "jupiterctl --help"


class InvalidDomainError(UsageError):
    """A domain file can't be read or doesn't say what it must."""

    code = "invalid-domain"
    default_hint = "jupiterctl domain lint FILE shows every mistake with its line"


class InvalidSettingError(UsageError):
    """A setting in jupiter.yaml, the environment or a flag is wrong."""

    code = "invalid-setting"
    default_hint = "config/jupiter.yaml lists every setting"


class InvalidClusterFileError(InvalidSettingError):
    """A cluster file can't be read or doesn't say what it must."""

    code = "invalid-cluster-file"
    default_hint = "config/cluster.example.yaml shows every key"


class DaemonUnreachableError(JupiterError):
    """No jupiterd answers on the control socket."""

    code = "daemon-unreachable"
    exit_code = ExitCode.UNREACHABLE
    grpc_status = "UNAVAILABLE"
    default_hint = "start it with: jupiterd"


class PeerUnreachableError(JupiterError):
    """Another node doesn't answer."""

    code = "peer-unreachable"
    may_mend = True
    exit_code = ExitCode.UNREACHABLE
    grpc_status = "UNAVAILABLE"
    default_hint = "jupiterctl node list shows who is alive"


class DrainedError(PeerUnreachableError):
    """Whoever could do it is drained, by a command or the cluster file: it waits for them."""

    code = "drained"
    default_hint = "jupiterctl node list shows who is idle; jupiterctl node resume NODE"


class MemoryMissingError(PeerUnreachableError):
    """Those who are here can't hold a model together that is cut over ranks: it waits for more."""

    code = "memory-missing"
    default_hint = "start jupiterd on the machine that is gone, or on another with as much memory"


class ConnectionRefusedByPeerError(PeerUnreachableError):
    """The machine answers and nothing listens on that port: its daemon has ended."""

    code = "connection-refused"
    default_hint = "start jupiterd on that machine"


class NoLeaderError(JupiterError):
    """Nobody leads just now; an election takes about three seconds."""

    code = "no-leader"
    may_mend = True
    exit_code = ExitCode.UNREACHABLE
    grpc_status = "UNAVAILABLE"
    default_hint = "wait a few seconds and try again; jupiterctl status shows the election"


class TimedOutError(JupiterError):
    """Not done within the time given."""

    code = "timed-out"
    may_mend = True
    exit_code = ExitCode.TIMED_OUT
    grpc_status = "DEADLINE_EXCEEDED"
    default_hint = "the work goes on; follow it with: jupiterctl cycle watch"


class RefusedError(JupiterError):
    """Understood, and not allowed."""

    code = "refused"
    may_mend = True
    exit_code = ExitCode.REFUSED
    grpc_status = "PERMISSION_DENIED"
    default_hint = "jupiterctl status shows how things stand"


class NotAMemberError(RefusedError):
    """Only members may ask that, and the caller's key is not among them."""

    code = "not-a-member"
    default_hint = "jupiterctl cluster open, on any member, lets new machines in"


class NotTrustedError(RefusedError):
    """Nobody has said yes to a member that walked in, and only trusted ones may do that."""

    code = "not-trusted"
    default_hint = "say yes to it on a trusted member: jupiterctl node trust NODE"


class BadCertificateError(RefusedError):
    """A caller showed a certificate that can't be any node's."""

    code = "bad-certificate"
    default_hint = "a node's key is P-256; delete key.pem in its state folder for a new one"


class TooOftenError(RefusedError):
    """A caller asks more often, or for more at once, than any node has reason to."""

    code = "too-often"
    grpc_status = "RESOURCE_EXHAUSTED"
    default_hint = "it is tried again by itself"


class TooLargeError(RefusedError):
    """A request is larger than any that means something."""

    code = "too-large"
    grpc_status = "RESOURCE_EXHAUSTED"
    default_hint = "check that both machines run the same version: jupiterctl version"


class MalformedError(RefusedError):
    """A request that can't be read, or never came to its end."""

    code = "malformed"
    grpc_status = "INVALID_ARGUMENT"
    default_hint = "check that both machines run the same version: jupiterctl version"


class NotFoundError(JupiterError):
    """No such node, domain, cycle or artifact."""

    code = "not-found"
    may_mend = True
    exit_code = ExitCode.NOT_FOUND
    grpc_status = "NOT_FOUND"
    default_hint = "jupiterctl status lists what there is"


class ConflictError(JupiterError):
    """Something else stands in the way."""

    code = "conflict"
    exit_code = ExitCode.CONFLICT
    grpc_status = "FAILED_PRECONDITION"
    default_hint = "jupiterctl cycle status shows what is running"


class StudentOnTrialError(ConflictError):
    """Another student is on trial as a generator, or is to be, and would lose its place."""

    code = "student-on-trial"


class BranchChangedError(ConflictError):
    """Another line of the cycle counts by now than the one this work extends."""

    code = "line-changed"
    may_mend = True
    default_hint = "nothing is lost: jupiterctl cluster branches lists every line"


class PortInUseError(ConflictError):
    """Another program listens on the port that was asked for."""

    code = "port-in-use"
    default_hint = "choose another one with --port, or let the system choose with --port 0"


class StateDirError(JupiterError):
    """The state folder can't be written, or another daemon holds it."""

    code = "state-dir"
    is_of_one_machine = True
    exit_code = ExitCode.CONFLICT
    grpc_status = "FAILED_PRECONDITION"
    default_hint = "choose another folder with --state-dir"


class NewerStateError(StateDirError):
    """A newer Jupiter wrote the state folder, in a layout that this one doesn't know."""

    code = "newer-state"
    exit_code = ExitCode.REFUSED
    grpc_status = "PERMISSION_DENIED"
    default_hint = "start the newer version again, or choose another folder with --state-dir"


class CorruptLedgerError(JupiterError):
    """A ledger entry whose hash, signature or chain is wrong."""

    code = "corrupt-ledger"
    grpc_status = "DATA_LOSS"
    default_hint = "the entry is ignored; if this repeats, check the disk of the node that sent it"


class DiskFullError(JupiterError):
    """No room left where Jupiter writes."""

    code = "disk-full"
    may_mend = True
    is_of_one_machine = True
    grpc_status = "RESOURCE_EXHAUSTED"
    default_hint = "free some space; the work goes on from where it stopped"


class EmptySourceError(JupiterError):
    """A data source has nothing in it that can be used."""

    code = "empty-source"
    is_permanent = True
    exit_code = ExitCode.NOT_FOUND
    grpc_status = "NOT_FOUND"
    default_hint = "check data_sources in the domain file: the path, and the glob"


class TooLittleTextError(EmptySourceError):
    """The text that was collected is too little for a verdict; nothing was trained."""

    code, exit_code = "too-little-text", ExitCode.REFUSED


class NotOfferedError(EmptySourceError):
    """A machine was to read what its owner neither asked for there nor offers to others."""

    code = "not-offered"
    exit_code = ExitCode.REFUSED
    grpc_status = "PERMISSION_DENIED"
    default_hint = "type the command on that machine, or see readable_folders in its jupiter.yaml"


class SourceUnreachableError(JupiterError):
    """There is no way to a data source just now; it is tried again for a while, not for ever."""

    code = "source-unreachable"
    is_of_one_machine = True
    exit_code = ExitCode.UNREACHABLE
    grpc_status = "UNAVAILABLE"
    default_hint = "check the name, and this machine's way to huggingface.co"


class GeneratorUnreachableError(SourceUnreachableError):
    """The server that is to generate text doesn't answer, or only with errors."""

    code = "generator-unreachable"
    default_hint = "look whether it runs; a round goes on without generated text meanwhile"


class GeneratorRefusedError(JupiterError):
    """The server that is to generate text doesn't want us, or doesn't have the model."""

    code = "generator-refused"
    is_permanent = True
    is_of_one_machine = True
    exit_code = ExitCode.REFUSED
    grpc_status = "PERMISSION_DENIED"
    default_hint = "check the address, the model behind its #, and the key (--api-key-env NAME)"


class TooLargeForDeviceError(JupiterError):
    """No plan for a model of this size fits the memory of the devices."""

    code = "too-large-for-device"
    is_permanent = True
    grpc_status = "FAILED_PRECONDITION"
    default_hint = "choose a smaller size; config/models holds every size"


class DeviceFullError(JupiterError):
    """Other programs have so much of a device's memory that a rank of a gang has no room there."""

    code = "device-full"
    may_mend = True
    is_of_one_machine = True
    grpc_status = "RESOURCE_EXHAUSTED"
    default_hint = "end what else uses that device; it is tried again by itself"


class DeviceBusyError(JupiterError):
    """Another gang trains on a device, perhaps that of another daemon on the same machine."""

    code = "device-busy"
    may_mend = True
    is_of_one_machine = True
    grpc_status = "RESOURCE_EXHAUSTED"
    default_hint = "wait for it to end, or give each daemon its own devices with --devices"


class MissingExtraError(JupiterError):
    """A machine learning library that this work needs isn't installed."""

    code = "missing-extra"
    is_permanent = True
    is_of_one_machine = True
    grpc_status = "FAILED_PRECONDITION"
    default_hint = "installers/install.sh --extra cpu (nvidia, mac), or pip install 'jupiterd[cpu]'"


class BadRouteError(JupiterError):
    """Two members of a gang can't reach each other; the message names host and address."""

    code = "bad-route"
    may_mend = True
    exit_code = ExitCode.UNREACHABLE
    grpc_status = "UNAVAILABLE"
    default_hint = "check the firewall and the cable between the two machines named"


class WorkFailedError(JupiterError):
    """A worker process ended without a result."""

    code = "work-failed"
    is_of_one_machine = True
    grpc_status = "ABORTED"
    default_hint = "the worker's own output is in logs/ of the state folder"


class LossDivergedError(WorkFailedError):
    """The loss, or the gradient, is no longer a number: training on would ruin the weights."""

    code = "loss-diverged"
    is_permanent = True
    default_hint = "lower the learning rate, and start again from the last good checkpoint"


class OutOfSyncError(WorkFailedError):
    """The ranks of a gang no longer hold the same weights: what they train means nothing."""

    code = "out-of-sync"
    is_permanent = True
    default_hint = "look at that machine's memory and drivers; go on from the last checkpoint"


class StateNotFetchedError(WorkFailedError):
    """A rank that joined a gang couldn't get the state that the others train on with."""

    code = "state-not-fetched"
    may_mend = True
    default_hint = "the others train on, and it is tried again by itself"


class IslandLeftOutError(WorkFailedError):
    """What an island trains isn't merged: it is no numbers, far off, or from other weights."""

    code = "island-left-out"
    may_mend = True
    default_hint = "it begins anew from another island's checkpoint, by itself"


class IslandLostError(WorkFailedError):
    """An island's state is of no use to its run any more, and nobody has another one for it."""

    code = "island-lost"
    is_permanent = True
    default_hint = "the other islands train on without it"


class StrangeIslandError(WorkFailedError):
    """An island computes something else than the others, with the same weights."""

    code = "strange-island"
    is_permanent = True
    is_of_one_machine = False  # the message names the machines
    default_hint = "have the same jupiterd, torch and mlx on all machines: jupiterctl version"


class RanksDisagreeError(WorkFailedError):
    """The ranks of a gang were told different things, or run different versions."""

    code = "ranks-disagree"
    is_permanent = True
    is_of_one_machine = False  # the message names the node
    default_hint = "compare that node with the others: jupiterctl version on each of them"


class NcclFailedError(WorkFailedError):
    """The ranks of a gang couldn't meet over NCCL, or not sum what they have."""

    code = "nccl-failed"
    may_mend = True
    default_hint = "training goes on over gloo by itself; set NCCL_DEBUG=INFO to find the cause"


class OutOfMemoryError(WorkFailedError):
    """A worker's device has too little memory for what it computes at a time."""

    code = "out-of-memory"
    default_hint = "it is tried again by itself, with half as many sequences at a time"


class ModelTooLargeError(OutOfMemoryError):
    """Not even one sequence at a time fits into a device's memory."""

    code = "model-too-large"
    is_permanent = True
    default_hint = "choose a smaller --size or seq_len, or give that node another role"


class WorkerCrashedError(WorkFailedError):
    """A worker process was ended by a fault of its own, such as a bad access to memory."""

    code = "worker-crashed"


class WorkerKilledError(WorkFailedError):
    """A worker process was killed from outside; nothing says that memory ran out."""

    code = "worker-killed"
    default_hint = "somebody ended it, or memory ran out: jupiterctl monitor shows how full it is"


class WorkStoppedError(WorkFailedError):
    """A worker process was told to stop."""

    code = "work-stopped"
    default_hint = "the cycle goes on from the last checkpoint"


class ServiceError(JupiterError):
    """Nobody keeps services on this machine, or whoever does couldn't do what it was told."""

    code = "service"
    is_of_one_machine = True
    default_hint = "jupiterd service logs shows what the daemon said"


class UnhealthyError(JupiterError):
    """`status --check` found something wrong."""

    code = "unhealthy"
    exit_code = ExitCode.UNHEALTHY
    default_hint = "jupiterctl status shows what is wrong"


def _tree(root: type[JupiterError]) -> list[type[JupiterError]]:
    return [root, *(found for child in root.__subclasses__() for found in _tree(child))]


BY_CODE: Mapping[str, type[JupiterError]] = {error.code: error for error in _tree(JupiterError)}
"""Every error by its code, for rebuilding one that came over the wire."""


def from_wire(code: str, message: str, hint: str) -> JupiterError:
    """Rebuild an error that another process or node sent; unknown codes become plain failures."""
    return BY_CODE.get(code, JupiterError)(message, hint)
