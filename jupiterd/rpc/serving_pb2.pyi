from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AnswerAsked(_message.Message):
    __slots__ = ("order",)
    ORDER_FIELD_NUMBER: _ClassVar[int]
    order: AnswerOrder
    def __init__(self, order: _Optional[_Union[AnswerOrder, _Mapping]] = ...) -> None: ...

class AnswerOrder(_message.Message):
    __slots__ = ("model", "artifact", "is_chat", "is_streamed", "body")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    ARTIFACT_FIELD_NUMBER: _ClassVar[int]
    IS_CHAT_FIELD_NUMBER: _ClassVar[int]
    IS_STREAMED_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    model: str
    artifact: str
    is_chat: bool
    is_streamed: bool
    body: bytes
    def __init__(self, model: _Optional[str] = ..., artifact: _Optional[str] = ..., is_chat: _Optional[bool] = ..., is_streamed: _Optional[bool] = ..., body: _Optional[bytes] = ...) -> None: ...

class AnswerPiece(_message.Message):
    __slots__ = ("head", "data", "over")
    HEAD_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    OVER_FIELD_NUMBER: _ClassVar[int]
    head: AnswerHead
    data: bytes
    over: AnswerOver
    def __init__(self, head: _Optional[_Union[AnswerHead, _Mapping]] = ..., data: _Optional[bytes] = ..., over: _Optional[_Union[AnswerOver, _Mapping]] = ...) -> None: ...

class AnswerHead(_message.Message):
    __slots__ = ("status", "content_type", "left_out")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    status: int
    content_type: str
    left_out: str
    def __init__(self, status: _Optional[int] = ..., content_type: _Optional[str] = ..., left_out: _Optional[str] = ...) -> None: ...

class AnswerOver(_message.Message):
    __slots__ = ("code", "reason", "hint", "retry_after_s")
    CODE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    HINT_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_S_FIELD_NUMBER: _ClassVar[int]
    code: str
    reason: str
    hint: str
    retry_after_s: float
    def __init__(self, code: _Optional[str] = ..., reason: _Optional[str] = ..., hint: _Optional[str] = ..., retry_after_s: _Optional[float] = ...) -> None: ...

class BatchAsked(_message.Message):
    __slots__ = ("node", "order", "batch")
    NODE_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    node: str
    order: BatchOrder
    batch: Batch
    def __init__(self, node: _Optional[str] = ..., order: _Optional[_Union[BatchOrder, _Mapping]] = ..., batch: _Optional[_Union[Batch, _Mapping]] = ...) -> None: ...

class BatchOrder(_message.Message):
    __slots__ = ("artifact", "device")
    ARTIFACT_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    artifact: str
    device: str
    def __init__(self, artifact: _Optional[str] = ..., device: _Optional[str] = ...) -> None: ...

class Batch(_message.Message):
    __slots__ = ("number", "lines")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    LINES_FIELD_NUMBER: _ClassVar[int]
    number: int
    lines: bytes
    def __init__(self, number: _Optional[int] = ..., lines: _Optional[bytes] = ...) -> None: ...

class BatchPiece(_message.Message):
    __slots__ = ("answers", "over")
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    OVER_FIELD_NUMBER: _ClassVar[int]
    answers: Batch
    over: AnswerOver
    def __init__(self, answers: _Optional[_Union[Batch, _Mapping]] = ..., over: _Optional[_Union[AnswerOver, _Mapping]] = ...) -> None: ...
