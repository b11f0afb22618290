from jupiterd.rpc import script_pb2 as _script_pb2
from jupiterd.rpc import serving_pb2 as _serving_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class StatusRequest(_message.Message):
    __slots__ = ("noun",)
    NOUN_FIELD_NUMBER: _ClassVar[int]
    noun: str
    def __init__(self, noun: _Optional[str] = ...) -> None: ...

class Document(_message.Message):
    __slots__ = ("json",)
    JSON_FIELD_NUMBER: _ClassVar[int]
    json: str
    def __init__(self, json: _Optional[str] = ...) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ("noun",)
    NOUN_FIELD_NUMBER: _ClassVar[int]
    noun: str
    def __init__(self, noun: _Optional[str] = ...) -> None: ...

class WatchEvent(_message.Message):
    __slots__ = ("snapshot", "delta", "heartbeat")
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    snapshot: Document
    delta: Document
    heartbeat: int
    def __init__(self, snapshot: _Optional[_Union[Document, _Mapping]] = ..., delta: _Optional[_Union[Document, _Mapping]] = ..., heartbeat: _Optional[int] = ...) -> None: ...

class ExecuteRequest(_message.Message):
    __slots__ = ("verb", "arguments_json")
    VERB_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    verb: str
    arguments_json: str
    def __init__(self, verb: _Optional[str] = ..., arguments_json: _Optional[str] = ...) -> None: ...
