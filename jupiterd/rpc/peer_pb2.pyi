from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ClusterSummary(_message.Message):
    __slots__ = ("cluster", "label", "blank", "open", "leader", "term", "members", "absorbed")
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    BLANK_FIELD_NUMBER: _ClassVar[int]
    OPEN_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    TERM_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    ABSORBED_FIELD_NUMBER: _ClassVar[int]
    cluster: str
    label: str
    blank: bool
    open: bool
    leader: str
    term: int
    members: int
    absorbed: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, cluster: _Optional[str] = ..., label: _Optional[str] = ..., blank: _Optional[bool] = ..., open: _Optional[bool] = ..., leader: _Optional[str] = ..., term: _Optional[int] = ..., members: _Optional[int] = ..., absorbed: _Optional[_Iterable[str]] = ...) -> None: ...

class HelloRequest(_message.Message):
    __slots__ = ("protocol", "summary", "name", "port", "greeting")
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    GREETING_FIELD_NUMBER: _ClassVar[int]
    protocol: int
    summary: ClusterSummary
    name: str
    port: int
    greeting: str
    def __init__(self, protocol: _Optional[int] = ..., summary: _Optional[_Union[ClusterSummary, _Mapping]] = ..., name: _Optional[str] = ..., port: _Optional[int] = ..., greeting: _Optional[str] = ...) -> None: ...

class HelloReply(_message.Message):
    __slots__ = ("protocol", "summary", "name", "run_nonce", "member", "member_addresses", "is_caller", "clone_at", "members_port")
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    RUN_NONCE_FIELD_NUMBER: _ClassVar[int]
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    MEMBER_ADDRESSES_FIELD_NUMBER: _ClassVar[int]
    IS_CALLER_FIELD_NUMBER: _ClassVar[int]
    CLONE_AT_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_PORT_FIELD_NUMBER: _ClassVar[int]
    protocol: int
    summary: ClusterSummary
    name: str
    run_nonce: str
    member: bool
    member_addresses: _containers.RepeatedScalarFieldContainer[str]
    is_caller: bool
    clone_at: str
    members_port: int
    def __init__(self, protocol: _Optional[int] = ..., summary: _Optional[_Union[ClusterSummary, _Mapping]] = ..., name: _Optional[str] = ..., run_nonce: _Optional[str] = ..., member: _Optional[bool] = ..., member_addresses: _Optional[_Iterable[str]] = ..., is_caller: _Optional[bool] = ..., clone_at: _Optional[str] = ..., members_port: _Optional[int] = ...) -> None: ...

class JoinRequest(_message.Message):
    __slots__ = ("name", "port", "certificate_pem", "token_id", "proof", "commitment", "nonce", "version")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATE_PEM_FIELD_NUMBER: _ClassVar[int]
    TOKEN_ID_FIELD_NUMBER: _ClassVar[int]
    PROOF_FIELD_NUMBER: _ClassVar[int]
    COMMITMENT_FIELD_NUMBER: _ClassVar[int]
    NONCE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    name: str
    port: int
    certificate_pem: bytes
    token_id: str
    proof: bytes
    commitment: bytes
    nonce: bytes
    version: str
    def __init__(self, name: _Optional[str] = ..., port: _Optional[int] = ..., certificate_pem: _Optional[bytes] = ..., token_id: _Optional[str] = ..., proof: _Optional[bytes] = ..., commitment: _Optional[bytes] = ..., nonce: _Optional[bytes] = ..., version: _Optional[str] = ...) -> None: ...

class JoinReply(_message.Message):
    __slots__ = ("decision", "reason", "cluster", "leader", "leader_addresses", "proof", "nonce", "revealed")
    class Decision(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        UNKNOWN: _ClassVar[JoinReply.Decision]
        ADMITTED: _ClassVar[JoinReply.Decision]
        ASK_LEADER: _ClassVar[JoinReply.Decision]
        PENDING: _ClassVar[JoinReply.Decision]
        REFUSED: _ClassVar[JoinReply.Decision]
    UNKNOWN: JoinReply.Decision
    ADMITTED: JoinReply.Decision
    ASK_LEADER: JoinReply.Decision
    PENDING: JoinReply.Decision
    REFUSED: JoinReply.Decision
    DECISION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    LEADER_ADDRESSES_FIELD_NUMBER: _ClassVar[int]
    PROOF_FIELD_NUMBER: _ClassVar[int]
    NONCE_FIELD_NUMBER: _ClassVar[int]
    REVEALED_FIELD_NUMBER: _ClassVar[int]
    decision: JoinReply.Decision
    reason: str
    cluster: str
    leader: str
    leader_addresses: _containers.RepeatedScalarFieldContainer[str]
    proof: bytes
    nonce: bytes
    revealed: bool
    def __init__(self, decision: _Optional[_Union[JoinReply.Decision, str]] = ..., reason: _Optional[str] = ..., cluster: _Optional[str] = ..., leader: _Optional[str] = ..., leader_addresses: _Optional[_Iterable[str]] = ..., proof: _Optional[bytes] = ..., nonce: _Optional[bytes] = ..., revealed: _Optional[bool] = ...) -> None: ...

class BroughtLedger(_message.Message):
    __slots__ = ("cluster", "token_id", "proof", "only_look", "data")
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    TOKEN_ID_FIELD_NUMBER: _ClassVar[int]
    PROOF_FIELD_NUMBER: _ClassVar[int]
    ONLY_LOOK_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    cluster: str
    token_id: str
    proof: bytes
    only_look: bool
    data: bytes
    def __init__(self, cluster: _Optional[str] = ..., token_id: _Optional[str] = ..., proof: _Optional[bytes] = ..., only_look: _Optional[bool] = ..., data: _Optional[bytes] = ...) -> None: ...

class BringReply(_message.Message):
    __slots__ = ("failure", "leader_addresses", "brief_json", "proof")
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    LEADER_ADDRESSES_FIELD_NUMBER: _ClassVar[int]
    BRIEF_JSON_FIELD_NUMBER: _ClassVar[int]
    PROOF_FIELD_NUMBER: _ClassVar[int]
    failure: Failure
    leader_addresses: _containers.RepeatedScalarFieldContainer[str]
    brief_json: str
    proof: bytes
    def __init__(self, failure: _Optional[_Union[Failure, _Mapping]] = ..., leader_addresses: _Optional[_Iterable[str]] = ..., brief_json: _Optional[str] = ..., proof: _Optional[bytes] = ...) -> None: ...

class Heartbeat(_message.Message):
    __slots__ = ("cluster", "term", "leader", "head", "stability", "loop_lag_s", "ages_ms", "runs_gang", "telemetry", "goodbye", "members_alive", "about", "sent_s", "echo_s", "wall_s")
    class AgesMsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: int
        def __init__(self, key: _Optional[int] = ..., value: _Optional[int] = ...) -> None: ...
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    TERM_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    HEAD_FIELD_NUMBER: _ClassVar[int]
    STABILITY_FIELD_NUMBER: _ClassVar[int]
    LOOP_LAG_S_FIELD_NUMBER: _ClassVar[int]
    AGES_MS_FIELD_NUMBER: _ClassVar[int]
    RUNS_GANG_FIELD_NUMBER: _ClassVar[int]
    TELEMETRY_FIELD_NUMBER: _ClassVar[int]
    GOODBYE_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_ALIVE_FIELD_NUMBER: _ClassVar[int]
    ABOUT_FIELD_NUMBER: _ClassVar[int]
    SENT_S_FIELD_NUMBER: _ClassVar[int]
    ECHO_S_FIELD_NUMBER: _ClassVar[int]
    WALL_S_FIELD_NUMBER: _ClassVar[int]
    cluster: str
    term: int
    leader: str
    head: str
    stability: int
    loop_lag_s: float
    ages_ms: _containers.ScalarMap[int, int]
    runs_gang: bool
    telemetry: bytes
    goodbye: bool
    members_alive: int
    about: About
    sent_s: float
    echo_s: float
    wall_s: float
    def __init__(self, cluster: _Optional[str] = ..., term: _Optional[int] = ..., leader: _Optional[str] = ..., head: _Optional[str] = ..., stability: _Optional[int] = ..., loop_lag_s: _Optional[float] = ..., ages_ms: _Optional[_Mapping[int, int]] = ..., runs_gang: _Optional[bool] = ..., telemetry: _Optional[bytes] = ..., goodbye: _Optional[bool] = ..., members_alive: _Optional[int] = ..., about: _Optional[_Union[About, _Mapping]] = ..., sent_s: _Optional[float] = ..., echo_s: _Optional[float] = ..., wall_s: _Optional[float] = ...) -> None: ...

class About(_message.Message):
    __slots__ = ("run_nonce", "name", "addresses", "hardware", "address_kinds", "links")
    RUN_NONCE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ADDRESSES_FIELD_NUMBER: _ClassVar[int]
    HARDWARE_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_KINDS_FIELD_NUMBER: _ClassVar[int]
    LINKS_FIELD_NUMBER: _ClassVar[int]
    run_nonce: str
    name: str
    addresses: _containers.RepeatedScalarFieldContainer[str]
    hardware: bytes
    address_kinds: _containers.RepeatedScalarFieldContainer[int]
    links: bytes
    def __init__(self, run_nonce: _Optional[str] = ..., name: _Optional[str] = ..., addresses: _Optional[_Iterable[str]] = ..., hardware: _Optional[bytes] = ..., address_kinds: _Optional[_Iterable[int]] = ..., links: _Optional[bytes] = ...) -> None: ...

class LeaveRequest(_message.Message):
    __slots__ = ("cluster", "successor")
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    SUCCESSOR_FIELD_NUMBER: _ClassVar[int]
    cluster: str
    successor: str
    def __init__(self, cluster: _Optional[str] = ..., successor: _Optional[str] = ...) -> None: ...

class LeaveReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class UsePathRequest(_message.Message):
    __slots__ = ("address",)
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    address: str
    def __init__(self, address: _Optional[str] = ...) -> None: ...

class UsePathReply(_message.Message):
    __slots__ = ("known",)
    KNOWN_FIELD_NUMBER: _ClassVar[int]
    known: bool
    def __init__(self, known: _Optional[bool] = ...) -> None: ...

class MeasuredBytes(_message.Message):
    __slots__ = ("data",)
    DATA_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    def __init__(self, data: _Optional[bytes] = ...) -> None: ...

class TakenBytes(_message.Message):
    __slots__ = ("size_bytes",)
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    size_bytes: int
    def __init__(self, size_bytes: _Optional[int] = ...) -> None: ...

class GiveBytesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class NotePathRequest(_message.Message):
    __slots__ = ("address", "bits_per_s")
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    BITS_PER_S_FIELD_NUMBER: _ClassVar[int]
    address: str
    bits_per_s: float
    def __init__(self, address: _Optional[str] = ..., bits_per_s: _Optional[float] = ...) -> None: ...

class NotePathReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class MeasurePathsRequest(_message.Message):
    __slots__ = ("node",)
    NODE_FIELD_NUMBER: _ClassVar[int]
    node: str
    def __init__(self, node: _Optional[str] = ...) -> None: ...

class MeasurePathsReply(_message.Message):
    __slots__ = ("paths", "failure")
    PATHS_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    paths: _containers.RepeatedCompositeFieldContainer[MeasuredPath]
    failure: Failure
    def __init__(self, paths: _Optional[_Iterable[_Union[MeasuredPath, _Mapping]]] = ..., failure: _Optional[_Union[Failure, _Mapping]] = ...) -> None: ...

class MeasuredPath(_message.Message):
    __slots__ = ("target", "source", "interface", "kind", "active", "answers", "rtt_ms", "out_mbit_per_s", "in_mbit_per_s", "note")
    TARGET_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    INTERFACE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_FIELD_NUMBER: _ClassVar[int]
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    RTT_MS_FIELD_NUMBER: _ClassVar[int]
    OUT_MBIT_PER_S_FIELD_NUMBER: _ClassVar[int]
    IN_MBIT_PER_S_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    target: str
    source: str
    interface: str
    kind: str
    active: bool
    answers: bool
    rtt_ms: float
    out_mbit_per_s: float
    in_mbit_per_s: float
    note: str
    def __init__(self, target: _Optional[str] = ..., source: _Optional[str] = ..., interface: _Optional[str] = ..., kind: _Optional[str] = ..., active: _Optional[bool] = ..., answers: _Optional[bool] = ..., rtt_ms: _Optional[float] = ..., out_mbit_per_s: _Optional[float] = ..., in_mbit_per_s: _Optional[float] = ..., note: _Optional[str] = ...) -> None: ...

class TraceRequest(_message.Message):
    __slots__ = ("samples", "shards", "offset", "batch", "most")
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    SHARDS_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    MOST_FIELD_NUMBER: _ClassVar[int]
    samples: _containers.RepeatedScalarFieldContainer[str]
    shards: str
    offset: int
    batch: str
    most: int
    def __init__(self, samples: _Optional[_Iterable[str]] = ..., shards: _Optional[str] = ..., offset: _Optional[int] = ..., batch: _Optional[str] = ..., most: _Optional[int] = ...) -> None: ...

class TraceReply(_message.Message):
    __slots__ = ("samples", "token")
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    samples: _containers.RepeatedCompositeFieldContainer[TracedSample]
    token: TracedToken
    def __init__(self, samples: _Optional[_Iterable[_Union[TracedSample, _Mapping]]] = ..., token: _Optional[_Union[TracedToken, _Mapping]] = ...) -> None: ...

class TracedSample(_message.Message):
    __slots__ = ("id", "record", "text_bytes", "batches", "packed", "reason")
    ID_FIELD_NUMBER: _ClassVar[int]
    RECORD_FIELD_NUMBER: _ClassVar[int]
    TEXT_BYTES_FIELD_NUMBER: _ClassVar[int]
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    PACKED_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    id: str
    record: bytes
    text_bytes: int
    batches: _containers.RepeatedScalarFieldContainer[str]
    packed: _containers.RepeatedCompositeFieldContainer[TracedDocument]
    reason: str
    def __init__(self, id: _Optional[str] = ..., record: _Optional[bytes] = ..., text_bytes: _Optional[int] = ..., batches: _Optional[_Iterable[str]] = ..., packed: _Optional[_Iterable[_Union[TracedDocument, _Mapping]]] = ..., reason: _Optional[str] = ...) -> None: ...

class TracedToken(_message.Message):
    __slots__ = ("tokens", "document")
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    tokens: int
    document: TracedDocument
    def __init__(self, tokens: _Optional[int] = ..., document: _Optional[_Union[TracedDocument, _Mapping]] = ...) -> None: ...

class CurvesRequest(_message.Message):
    __slots__ = ("run",)
    RUN_FIELD_NUMBER: _ClassVar[int]
    run: str
    def __init__(self, run: _Optional[str] = ...) -> None: ...

class CurvesReply(_message.Message):
    __slots__ = ("curves",)
    CURVES_FIELD_NUMBER: _ClassVar[int]
    curves: _containers.RepeatedCompositeFieldContainer[LossCurve]
    def __init__(self, curves: _Optional[_Iterable[_Union[LossCurve, _Mapping]]] = ...) -> None: ...

class LossCurve(_message.Message):
    __slots__ = ("island", "round", "points", "validations")
    ISLAND_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    VALIDATIONS_FIELD_NUMBER: _ClassVar[int]
    island: int
    round: int
    points: _containers.RepeatedCompositeFieldContainer[LossPoint]
    validations: _containers.RepeatedCompositeFieldContainer[LossPoint]
    def __init__(self, island: _Optional[int] = ..., round: _Optional[int] = ..., points: _Optional[_Iterable[_Union[LossPoint, _Mapping]]] = ..., validations: _Optional[_Iterable[_Union[LossPoint, _Mapping]]] = ...) -> None: ...

class LossPoint(_message.Message):
    __slots__ = ("step", "loss", "tokens", "at_s")
    STEP_FIELD_NUMBER: _ClassVar[int]
    LOSS_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    AT_S_FIELD_NUMBER: _ClassVar[int]
    step: int
    loss: float
    tokens: int
    at_s: float
    def __init__(self, step: _Optional[int] = ..., loss: _Optional[float] = ..., tokens: _Optional[int] = ..., at_s: _Optional[float] = ...) -> None: ...

class TracedDocument(_message.Message):
    __slots__ = ("shards", "sample", "number", "first", "end")
    SHARDS_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    shards: str
    sample: str
    number: int
    first: int
    end: int
    def __init__(self, shards: _Optional[str] = ..., sample: _Optional[str] = ..., number: _Optional[int] = ..., first: _Optional[int] = ..., end: _Optional[int] = ...) -> None: ...

class ReportRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReportReply(_message.Message):
    __slots__ = ("versions", "processes", "log")
    class VersionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    PROCESSES_FIELD_NUMBER: _ClassVar[int]
    LOG_FIELD_NUMBER: _ClassVar[int]
    versions: _containers.ScalarMap[str, str]
    processes: _containers.RepeatedCompositeFieldContainer[RunningProcess]
    log: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, versions: _Optional[_Mapping[str, str]] = ..., processes: _Optional[_Iterable[_Union[RunningProcess, _Mapping]]] = ..., log: _Optional[_Iterable[str]] = ...) -> None: ...

class RunningProcess(_message.Message):
    __slots__ = ("task", "id", "attempt")
    TASK_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    task: str
    id: str
    attempt: int
    def __init__(self, task: _Optional[str] = ..., id: _Optional[str] = ..., attempt: _Optional[int] = ...) -> None: ...

class PreVoteRequest(_message.Message):
    __slots__ = ("term", "stability", "cluster")
    TERM_FIELD_NUMBER: _ClassVar[int]
    STABILITY_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    term: int
    stability: int
    cluster: str
    def __init__(self, term: _Optional[int] = ..., stability: _Optional[int] = ..., cluster: _Optional[str] = ...) -> None: ...

class PreVoteReply(_message.Message):
    __slots__ = ("granted", "reason", "term")
    GRANTED_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    TERM_FIELD_NUMBER: _ClassVar[int]
    granted: bool
    reason: str
    term: int
    def __init__(self, granted: _Optional[bool] = ..., reason: _Optional[str] = ..., term: _Optional[int] = ...) -> None: ...

class WriterTip(_message.Message):
    __slots__ = ("writer", "index")
    WRITER_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    writer: str
    index: int
    def __init__(self, writer: _Optional[str] = ..., index: _Optional[int] = ...) -> None: ...

class ExchangeRequest(_message.Message):
    __slots__ = ("cluster", "have", "entries", "roster")
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    HAVE_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    ROSTER_FIELD_NUMBER: _ClassVar[int]
    cluster: str
    have: _containers.RepeatedCompositeFieldContainer[WriterTip]
    entries: _containers.RepeatedScalarFieldContainer[bytes]
    roster: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, cluster: _Optional[str] = ..., have: _Optional[_Iterable[_Union[WriterTip, _Mapping]]] = ..., entries: _Optional[_Iterable[bytes]] = ..., roster: _Optional[_Iterable[bytes]] = ...) -> None: ...

class ExchangeReply(_message.Message):
    __slots__ = ("have", "entries", "more", "snapshot_needed", "roster")
    HAVE_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_NEEDED_FIELD_NUMBER: _ClassVar[int]
    ROSTER_FIELD_NUMBER: _ClassVar[int]
    have: _containers.RepeatedCompositeFieldContainer[WriterTip]
    entries: _containers.RepeatedScalarFieldContainer[bytes]
    more: bool
    snapshot_needed: bool
    roster: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, have: _Optional[_Iterable[_Union[WriterTip, _Mapping]]] = ..., entries: _Optional[_Iterable[bytes]] = ..., more: _Optional[bool] = ..., snapshot_needed: _Optional[bool] = ..., roster: _Optional[_Iterable[bytes]] = ...) -> None: ...

class RosterRequest(_message.Message):
    __slots__ = ("cluster",)
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    cluster: str
    def __init__(self, cluster: _Optional[str] = ...) -> None: ...

class RosterReply(_message.Message):
    __slots__ = ("entries",)
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, entries: _Optional[_Iterable[bytes]] = ...) -> None: ...

class SnapshotRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SnapshotChunk(_message.Message):
    __slots__ = ("data",)
    DATA_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    def __init__(self, data: _Optional[bytes] = ...) -> None: ...

class CommandRequest(_message.Message):
    __slots__ = ("verb", "arguments_json")
    VERB_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    verb: str
    arguments_json: str
    def __init__(self, verb: _Optional[str] = ..., arguments_json: _Optional[str] = ...) -> None: ...

class CommandReply(_message.Message):
    __slots__ = ("result_json", "failure")
    RESULT_JSON_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    result_json: str
    failure: Failure
    def __init__(self, result_json: _Optional[str] = ..., failure: _Optional[_Union[Failure, _Mapping]] = ...) -> None: ...

class Failure(_message.Message):
    __slots__ = ("code", "message", "hint")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    HINT_FIELD_NUMBER: _ClassVar[int]
    code: str
    message: str
    hint: str
    def __init__(self, code: _Optional[str] = ..., message: _Optional[str] = ..., hint: _Optional[str] = ...) -> None: ...

class OpenProbeRequest(_message.Message):
    __slots__ = ("toward", "reserve")
    TOWARD_FIELD_NUMBER: _ClassVar[int]
    RESERVE_FIELD_NUMBER: _ClassVar[int]
    toward: str
    reserve: bool
    def __init__(self, toward: _Optional[str] = ..., reserve: _Optional[bool] = ...) -> None: ...

class OpenProbeReply(_message.Message):
    __slots__ = ("host", "port", "interface", "failure", "reserved_port", "addresses")
    HOST_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    INTERFACE_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    RESERVED_PORT_FIELD_NUMBER: _ClassVar[int]
    ADDRESSES_FIELD_NUMBER: _ClassVar[int]
    host: str
    port: int
    interface: str
    failure: Failure
    reserved_port: int
    addresses: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, host: _Optional[str] = ..., port: _Optional[int] = ..., interface: _Optional[str] = ..., failure: _Optional[_Union[Failure, _Mapping]] = ..., reserved_port: _Optional[int] = ..., addresses: _Optional[_Iterable[str]] = ...) -> None: ...

class ProbeRoutesRequest(_message.Message):
    __slots__ = ("targets",)
    TARGETS_FIELD_NUMBER: _ClassVar[int]
    targets: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, targets: _Optional[_Iterable[str]] = ...) -> None: ...

class ProbeRoutesReply(_message.Message):
    __slots__ = ("failures", "unreached")
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    UNREACHED_FIELD_NUMBER: _ClassVar[int]
    failures: _containers.RepeatedCompositeFieldContainer[Failure]
    unreached: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, failures: _Optional[_Iterable[_Union[Failure, _Mapping]]] = ..., unreached: _Optional[_Iterable[int]] = ...) -> None: ...

class TryLinksRequest(_message.Message):
    __slots__ = ("nodes",)
    NODES_FIELD_NUMBER: _ClassVar[int]
    nodes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, nodes: _Optional[_Iterable[str]] = ...) -> None: ...

class TryLinksReply(_message.Message):
    __slots__ = ("links",)
    LINKS_FIELD_NUMBER: _ClassVar[int]
    links: _containers.RepeatedCompositeFieldContainer[TriedLink]
    def __init__(self, links: _Optional[_Iterable[_Union[TriedLink, _Mapping]]] = ...) -> None: ...

class TriedLink(_message.Message):
    __slots__ = ("node", "handshakes", "unanswered")
    NODE_FIELD_NUMBER: _ClassVar[int]
    HANDSHAKES_FIELD_NUMBER: _ClassVar[int]
    UNANSWERED_FIELD_NUMBER: _ClassVar[int]
    node: str
    handshakes: int
    unanswered: int
    def __init__(self, node: _Optional[str] = ..., handshakes: _Optional[int] = ..., unanswered: _Optional[int] = ...) -> None: ...

class PrepareRanksRequest(_message.Message):
    __slots__ = ("engine", "ranks", "needs", "checkpoint_bytes")
    ENGINE_FIELD_NUMBER: _ClassVar[int]
    RANKS_FIELD_NUMBER: _ClassVar[int]
    NEEDS_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_BYTES_FIELD_NUMBER: _ClassVar[int]
    engine: str
    ranks: int
    needs: _containers.RepeatedCompositeFieldContainer[RankNeed]
    checkpoint_bytes: int
    def __init__(self, engine: _Optional[str] = ..., ranks: _Optional[int] = ..., needs: _Optional[_Iterable[_Union[RankNeed, _Mapping]]] = ..., checkpoint_bytes: _Optional[int] = ...) -> None: ...

class RankNeed(_message.Message):
    __slots__ = ("micro_batch", "size_bytes")
    MICRO_BATCH_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    micro_batch: int
    size_bytes: int
    def __init__(self, micro_batch: _Optional[int] = ..., size_bytes: _Optional[int] = ...) -> None: ...

class PrepareRanksReply(_message.Message):
    __slots__ = ("micro_batch", "note", "failure")
    MICRO_BATCH_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    micro_batch: int
    note: str
    failure: Failure
    def __init__(self, micro_batch: _Optional[int] = ..., note: _Optional[str] = ..., failure: _Optional[_Union[Failure, _Mapping]] = ...) -> None: ...

class WorkRequest(_message.Message):
    __slots__ = ("id", "term", "attempt", "task", "params", "inputs", "attach")
    class InputsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    TERM_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    PARAMS_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    ATTACH_FIELD_NUMBER: _ClassVar[int]
    id: str
    term: int
    attempt: int
    task: str
    params: bytes
    inputs: _containers.ScalarMap[str, str]
    attach: bool
    def __init__(self, id: _Optional[str] = ..., term: _Optional[int] = ..., attempt: _Optional[int] = ..., task: _Optional[str] = ..., params: _Optional[bytes] = ..., inputs: _Optional[_Mapping[str, str]] = ..., attach: _Optional[bool] = ...) -> None: ...

class StoreRequest(_message.Message):
    __slots__ = ("store", "verb", "keys", "values", "within_s")
    STORE_FIELD_NUMBER: _ClassVar[int]
    VERB_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    WITHIN_S_FIELD_NUMBER: _ClassVar[int]
    store: str
    verb: str
    keys: _containers.RepeatedScalarFieldContainer[str]
    values: _containers.RepeatedScalarFieldContainer[bytes]
    within_s: float
    def __init__(self, store: _Optional[str] = ..., verb: _Optional[str] = ..., keys: _Optional[_Iterable[str]] = ..., values: _Optional[_Iterable[bytes]] = ..., within_s: _Optional[float] = ...) -> None: ...

class StoreReply(_message.Message):
    __slots__ = ("value",)
    VALUE_FIELD_NUMBER: _ClassVar[int]
    value: bytes
    def __init__(self, value: _Optional[bytes] = ...) -> None: ...

class EndAttemptRequest(_message.Message):
    __slots__ = ("term", "attempt", "keep_within_s", "keep_after_step", "after_step")
    TERM_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    KEEP_WITHIN_S_FIELD_NUMBER: _ClassVar[int]
    KEEP_AFTER_STEP_FIELD_NUMBER: _ClassVar[int]
    AFTER_STEP_FIELD_NUMBER: _ClassVar[int]
    term: int
    attempt: int
    keep_within_s: float
    keep_after_step: int
    after_step: bool
    def __init__(self, term: _Optional[int] = ..., attempt: _Optional[int] = ..., keep_within_s: _Optional[float] = ..., keep_after_step: _Optional[int] = ..., after_step: _Optional[bool] = ...) -> None: ...

class EndAttemptReply(_message.Message):
    __slots__ = ("kept",)
    KEPT_FIELD_NUMBER: _ClassVar[int]
    kept: WorkCheckpoint
    def __init__(self, kept: _Optional[_Union[WorkCheckpoint, _Mapping]] = ...) -> None: ...

class WorkEvent(_message.Message):
    __slots__ = ("progress", "checkpoint", "listening", "finished", "failure", "started", "joined", "alive", "unsaved", "pseudo_gradient")
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    LISTENING_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    STARTED_FIELD_NUMBER: _ClassVar[int]
    JOINED_FIELD_NUMBER: _ClassVar[int]
    ALIVE_FIELD_NUMBER: _ClassVar[int]
    UNSAVED_FIELD_NUMBER: _ClassVar[int]
    PSEUDO_GRADIENT_FIELD_NUMBER: _ClassVar[int]
    progress: WorkProgress
    checkpoint: WorkCheckpoint
    listening: WorkListening
    finished: WorkFinished
    failure: Failure
    started: WorkStarted
    joined: WorkJoined
    alive: WorkAlive
    unsaved: WorkUnsaved
    pseudo_gradient: WorkPseudoGradient
    def __init__(self, progress: _Optional[_Union[WorkProgress, _Mapping]] = ..., checkpoint: _Optional[_Union[WorkCheckpoint, _Mapping]] = ..., listening: _Optional[_Union[WorkListening, _Mapping]] = ..., finished: _Optional[_Union[WorkFinished, _Mapping]] = ..., failure: _Optional[_Union[Failure, _Mapping]] = ..., started: _Optional[_Union[WorkStarted, _Mapping]] = ..., joined: _Optional[_Union[WorkJoined, _Mapping]] = ..., alive: _Optional[_Union[WorkAlive, _Mapping]] = ..., unsaved: _Optional[_Union[WorkUnsaved, _Mapping]] = ..., pseudo_gradient: _Optional[_Union[WorkPseudoGradient, _Mapping]] = ...) -> None: ...

class WorkUnsaved(_message.Message):
    __slots__ = ("step", "message")
    STEP_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    step: int
    message: str
    def __init__(self, step: _Optional[int] = ..., message: _Optional[str] = ...) -> None: ...

class WorkPseudoGradient(_message.Message):
    __slots__ = ("artifact", "after", "tokens", "norm", "elapsed_s", "logits", "size_bytes", "stands_at", "digest", "scored_step", "held_out", "counted")
    ARTIFACT_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    NORM_FIELD_NUMBER: _ClassVar[int]
    ELAPSED_S_FIELD_NUMBER: _ClassVar[int]
    LOGITS_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    STANDS_AT_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    SCORED_STEP_FIELD_NUMBER: _ClassVar[int]
    HELD_OUT_FIELD_NUMBER: _ClassVar[int]
    COUNTED_FIELD_NUMBER: _ClassVar[int]
    artifact: str
    after: str
    tokens: int
    norm: float
    elapsed_s: float
    logits: bytes
    size_bytes: int
    stands_at: str
    digest: bytes
    scored_step: int
    held_out: float
    counted: int
    def __init__(self, artifact: _Optional[str] = ..., after: _Optional[str] = ..., tokens: _Optional[int] = ..., norm: _Optional[float] = ..., elapsed_s: _Optional[float] = ..., logits: _Optional[bytes] = ..., size_bytes: _Optional[int] = ..., stands_at: _Optional[str] = ..., digest: _Optional[bytes] = ..., scored_step: _Optional[int] = ..., held_out: _Optional[float] = ..., counted: _Optional[int] = ...) -> None: ...

class WorkAlive(_message.Message):
    __slots__ = ("stage", "expected_s", "detail")
    STAGE_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_S_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    stage: str
    expected_s: float
    detail: str
    def __init__(self, stage: _Optional[str] = ..., expected_s: _Optional[float] = ..., detail: _Optional[str] = ...) -> None: ...

class WorkStarted(_message.Message):
    __slots__ = ("pid", "device", "running_s")
    PID_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    RUNNING_S_FIELD_NUMBER: _ClassVar[int]
    pid: int
    device: str
    running_s: float
    def __init__(self, pid: _Optional[int] = ..., device: _Optional[str] = ..., running_s: _Optional[float] = ...) -> None: ...

class WorkJoined(_message.Message):
    __slots__ = ("device", "note")
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    device: str
    note: str
    def __init__(self, device: _Optional[str] = ..., note: _Optional[str] = ...) -> None: ...

class WorkProgress(_message.Message):
    __slots__ = ("done", "total", "unit", "values")
    class ValuesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    DONE_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    done: int
    total: int
    unit: str
    values: _containers.ScalarMap[str, float]
    def __init__(self, done: _Optional[int] = ..., total: _Optional[int] = ..., unit: _Optional[str] = ..., values: _Optional[_Mapping[str, float]] = ...) -> None: ...

class WorkCheckpoint(_message.Message):
    __slots__ = ("artifact", "step", "tokens", "cursor", "loss", "horizon")
    class HorizonEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    ARTIFACT_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    LOSS_FIELD_NUMBER: _ClassVar[int]
    HORIZON_FIELD_NUMBER: _ClassVar[int]
    artifact: str
    step: int
    tokens: int
    cursor: int
    loss: float
    horizon: _containers.ScalarMap[str, float]
    def __init__(self, artifact: _Optional[str] = ..., step: _Optional[int] = ..., tokens: _Optional[int] = ..., cursor: _Optional[int] = ..., loss: _Optional[float] = ..., horizon: _Optional[_Mapping[str, float]] = ...) -> None: ...

class WorkListening(_message.Message):
    __slots__ = ("port",)
    PORT_FIELD_NUMBER: _ClassVar[int]
    port: int
    def __init__(self, port: _Optional[int] = ...) -> None: ...

class WorkFinished(_message.Message):
    __slots__ = ("outputs", "counts", "summary")
    class OutputsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class CountsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    outputs: _containers.ScalarMap[str, str]
    counts: _containers.ScalarMap[str, float]
    summary: bytes
    def __init__(self, outputs: _Optional[_Mapping[str, str]] = ..., counts: _Optional[_Mapping[str, float]] = ..., summary: _Optional[bytes] = ...) -> None: ...
