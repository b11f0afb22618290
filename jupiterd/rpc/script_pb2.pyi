from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PrepareScriptRequest(_message.Message):
    __slots__ = ("program", "folder", "script", "engine", "per_node", "host", "own_python", "files", "devices")
    PROGRAM_FIELD_NUMBER: _ClassVar[int]
    FOLDER_FIELD_NUMBER: _ClassVar[int]
    SCRIPT_FIELD_NUMBER: _ClassVar[int]
    ENGINE_FIELD_NUMBER: _ClassVar[int]
    PER_NODE_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    OWN_PYTHON_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    program: str
    folder: str
    script: str
    engine: str
    per_node: int
    host: str
    own_python: bool
    files: _containers.RepeatedScalarFieldContainer[str]
    devices: str
    def __init__(self, program: _Optional[str] = ..., folder: _Optional[str] = ..., script: _Optional[str] = ..., engine: _Optional[str] = ..., per_node: _Optional[int] = ..., host: _Optional[str] = ..., own_python: _Optional[bool] = ..., files: _Optional[_Iterable[str]] = ..., devices: _Optional[str] = ...) -> None: ...

class PrepareScriptReply(_message.Message):
    __slots__ = ("processes", "cores", "ports", "script_hash", "program", "python_version", "packages", "variables", "file_hashes", "gpus", "visible_devices", "hides_devices", "threads", "keeps_parts")
    class PackagesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class VariablesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    PROCESSES_FIELD_NUMBER: _ClassVar[int]
    CORES_FIELD_NUMBER: _ClassVar[int]
    PORTS_FIELD_NUMBER: _ClassVar[int]
    SCRIPT_HASH_FIELD_NUMBER: _ClassVar[int]
    PROGRAM_FIELD_NUMBER: _ClassVar[int]
    PYTHON_VERSION_FIELD_NUMBER: _ClassVar[int]
    PACKAGES_FIELD_NUMBER: _ClassVar[int]
    VARIABLES_FIELD_NUMBER: _ClassVar[int]
    FILE_HASHES_FIELD_NUMBER: _ClassVar[int]
    GPUS_FIELD_NUMBER: _ClassVar[int]
    VISIBLE_DEVICES_FIELD_NUMBER: _ClassVar[int]
    HIDES_DEVICES_FIELD_NUMBER: _ClassVar[int]
    THREADS_FIELD_NUMBER: _ClassVar[int]
    KEEPS_PARTS_FIELD_NUMBER: _ClassVar[int]
    processes: int
    cores: int
    ports: _containers.RepeatedScalarFieldContainer[int]
    script_hash: bytes
    program: str
    python_version: str
    packages: _containers.ScalarMap[str, str]
    variables: _containers.ScalarMap[str, str]
    file_hashes: _containers.RepeatedScalarFieldContainer[bytes]
    gpus: _containers.RepeatedScalarFieldContainer[str]
    visible_devices: str
    hides_devices: bool
    threads: int
    keeps_parts: bool
    def __init__(self, processes: _Optional[int] = ..., cores: _Optional[int] = ..., ports: _Optional[_Iterable[int]] = ..., script_hash: _Optional[bytes] = ..., program: _Optional[str] = ..., python_version: _Optional[str] = ..., packages: _Optional[_Mapping[str, str]] = ..., variables: _Optional[_Mapping[str, str]] = ..., file_hashes: _Optional[_Iterable[bytes]] = ..., gpus: _Optional[_Iterable[str]] = ..., visible_devices: _Optional[str] = ..., hides_devices: _Optional[bool] = ..., threads: _Optional[int] = ..., keeps_parts: _Optional[bool] = ...) -> None: ...

class BringFolderRequest(_message.Message):
    __slots__ = ("artifact", "run")
    ARTIFACT_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    artifact: str
    run: str
    def __init__(self, artifact: _Optional[str] = ..., run: _Optional[str] = ...) -> None: ...

class BringFolderReply(_message.Message):
    __slots__ = ("fetched_bytes", "folders")
    FETCHED_BYTES_FIELD_NUMBER: _ClassVar[int]
    FOLDERS_FIELD_NUMBER: _ClassVar[int]
    fetched_bytes: int
    folders: str
    def __init__(self, fetched_bytes: _Optional[int] = ..., folders: _Optional[str] = ...) -> None: ...

class ScriptRequest(_message.Message):
    __slots__ = ("node", "order", "signal", "follow", "asked", "window", "end")
    NODE_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    FOLLOW_FIELD_NUMBER: _ClassVar[int]
    ASKED_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    node: str
    order: ScriptOrder
    signal: int
    follow: ScriptFollow
    asked: ScriptAsked
    window: ScriptWindow
    end: ScriptEnd
    def __init__(self, node: _Optional[str] = ..., order: _Optional[_Union[ScriptOrder, _Mapping]] = ..., signal: _Optional[int] = ..., follow: _Optional[_Union[ScriptFollow, _Mapping]] = ..., asked: _Optional[_Union[ScriptAsked, _Mapping]] = ..., window: _Optional[_Union[ScriptWindow, _Mapping]] = ..., end: _Optional[_Union[ScriptEnd, _Mapping]] = ...) -> None: ...

class ScriptFollow(_message.Message):
    __slots__ = ("id", "offset")
    ID_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    id: str
    offset: int
    def __init__(self, id: _Optional[str] = ..., offset: _Optional[int] = ...) -> None: ...

class ScriptAsked(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ScriptEnd(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ScriptWindow(_message.Message):
    __slots__ = ("rows", "columns")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    rows: int
    columns: int
    def __init__(self, rows: _Optional[int] = ..., columns: _Optional[int] = ...) -> None: ...

class ScriptOrder(_message.Message):
    __slots__ = ("argv", "folder", "ranks", "store_host", "store_port", "shipped", "gpus", "id", "cut_timeout_s", "window", "member_hosts", "open_ports")
    ARGV_FIELD_NUMBER: _ClassVar[int]
    FOLDER_FIELD_NUMBER: _ClassVar[int]
    RANKS_FIELD_NUMBER: _ClassVar[int]
    STORE_HOST_FIELD_NUMBER: _ClassVar[int]
    STORE_PORT_FIELD_NUMBER: _ClassVar[int]
    SHIPPED_FIELD_NUMBER: _ClassVar[int]
    GPUS_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    CUT_TIMEOUT_S_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    MEMBER_HOSTS_FIELD_NUMBER: _ClassVar[int]
    OPEN_PORTS_FIELD_NUMBER: _ClassVar[int]
    argv: _containers.RepeatedScalarFieldContainer[str]
    folder: str
    ranks: _containers.RepeatedCompositeFieldContainer[ScriptRank]
    store_host: str
    store_port: int
    shipped: str
    gpus: _containers.RepeatedScalarFieldContainer[str]
    id: str
    cut_timeout_s: int
    window: ScriptWindow
    member_hosts: _containers.RepeatedScalarFieldContainer[str]
    open_ports: _containers.RepeatedCompositeFieldContainer[ScriptPorts]
    def __init__(self, argv: _Optional[_Iterable[str]] = ..., folder: _Optional[str] = ..., ranks: _Optional[_Iterable[_Union[ScriptRank, _Mapping]]] = ..., store_host: _Optional[str] = ..., store_port: _Optional[int] = ..., shipped: _Optional[str] = ..., gpus: _Optional[_Iterable[str]] = ..., id: _Optional[str] = ..., cut_timeout_s: _Optional[int] = ..., window: _Optional[_Union[ScriptWindow, _Mapping]] = ..., member_hosts: _Optional[_Iterable[str]] = ..., open_ports: _Optional[_Iterable[_Union[ScriptPorts, _Mapping]]] = ...) -> None: ...

class ScriptPorts(_message.Message):
    __slots__ = ("first", "last")
    FIRST_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    first: int
    last: int
    def __init__(self, first: _Optional[int] = ..., last: _Optional[int] = ...) -> None: ...

class ScriptRank(_message.Message):
    __slots__ = ("rank", "variables", "defaults", "hostfile")
    class VariablesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class DefaultsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    RANK_FIELD_NUMBER: _ClassVar[int]
    VARIABLES_FIELD_NUMBER: _ClassVar[int]
    DEFAULTS_FIELD_NUMBER: _ClassVar[int]
    HOSTFILE_FIELD_NUMBER: _ClassVar[int]
    rank: int
    variables: _containers.ScalarMap[str, str]
    defaults: _containers.ScalarMap[str, str]
    hostfile: str
    def __init__(self, rank: _Optional[int] = ..., variables: _Optional[_Mapping[str, str]] = ..., defaults: _Optional[_Mapping[str, str]] = ..., hostfile: _Optional[str] = ...) -> None: ...

class ScriptEvent(_message.Message):
    __slots__ = ("printed", "ended", "skipped", "over", "ending", "noticed", "offset")
    PRINTED_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    SKIPPED_FIELD_NUMBER: _ClassVar[int]
    OVER_FIELD_NUMBER: _ClassVar[int]
    ENDING_FIELD_NUMBER: _ClassVar[int]
    NOTICED_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    printed: ScriptPrinted
    ended: ScriptEnded
    skipped: ScriptSkipped
    over: ScriptOver
    ending: ScriptEnding
    noticed: ScriptNoticed
    offset: int
    def __init__(self, printed: _Optional[_Union[ScriptPrinted, _Mapping]] = ..., ended: _Optional[_Union[ScriptEnded, _Mapping]] = ..., skipped: _Optional[_Union[ScriptSkipped, _Mapping]] = ..., over: _Optional[_Union[ScriptOver, _Mapping]] = ..., ending: _Optional[_Union[ScriptEnding, _Mapping]] = ..., noticed: _Optional[_Union[ScriptNoticed, _Mapping]] = ..., offset: _Optional[int] = ...) -> None: ...

class ScriptEnding(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    def __init__(self, reason: _Optional[str] = ...) -> None: ...

class ScriptNoticed(_message.Message):
    __slots__ = ("words",)
    WORDS_FIELD_NUMBER: _ClassVar[int]
    words: str
    def __init__(self, words: _Optional[str] = ...) -> None: ...

class ScriptSkipped(_message.Message):
    __slots__ = ("bytes",)
    BYTES_FIELD_NUMBER: _ClassVar[int]
    bytes: int
    def __init__(self, bytes: _Optional[int] = ...) -> None: ...

class ScriptOver(_message.Message):
    __slots__ = ("reason", "code", "hint")
    REASON_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    HINT_FIELD_NUMBER: _ClassVar[int]
    reason: str
    code: str
    hint: str
    def __init__(self, reason: _Optional[str] = ..., code: _Optional[str] = ..., hint: _Optional[str] = ...) -> None: ...

class ScriptPrinted(_message.Message):
    __slots__ = ("rank", "is_error", "data")
    RANK_FIELD_NUMBER: _ClassVar[int]
    IS_ERROR_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    rank: int
    is_error: bool
    data: bytes
    def __init__(self, rank: _Optional[int] = ..., is_error: _Optional[bool] = ..., data: _Optional[bytes] = ...) -> None: ...

class ScriptEnded(_message.Message):
    __slots__ = ("rank", "status")
    RANK_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    rank: int
    status: int
    def __init__(self, rank: _Optional[int] = ..., status: _Optional[int] = ...) -> None: ...
