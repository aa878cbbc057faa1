"""Types of single settings: how a value may be written, in a file or as the text of a variable or flag.

Knows forms and ranges. Does not know whether a host answers or a file exists.
"""

import re
from contextlib import suppress
from math import inf
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, ByteSize, Field

_ADDRESS = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]]+):(?P<port>\d{1,5})")

_LEAST_GBIT = 0.001


def host_and_port(address: str) -> tuple[str, int]:
    """Return the parts of HOST:PORT; an IPv6 host is written in brackets and returned without.

    Raises:
        ValueError: `address` has another form.
    """
    match = _ADDRESS.fullmatch(address)
    if match is None or int(match["port"]) > 65535:  # noqa: PLR2004 (the largest TCP port)
        raise ValueError("an address is HOST:PORT with a port from 0 to 65535, such as 127.0.0.1:50051")
    return match["host"].strip("[]"), int(match["port"])


def _listen_address(text: str) -> str:
    host_and_port(text)
    return text


def _target_address(text: str) -> str:
    if host_and_port(text)[1] == 0:
        raise ValueError("port 0 can be listened on, but not dialled")
    return text


def _split_text(text: str) -> str:
    if text != "none" and not re.fullmatch(r"[1-9]\d{0,3}:[1-9]\d{0,3}", text):
        raise ValueError(
            "a split is HEAD:TAIL in layers, each at least 1, such as 1:1, or none to keep all layers in one place"
        )
    return text


def _body_split_text(text: str) -> str:
    if text == "none":
        raise ValueError("the cloud needs a split, such as 1:1; with none there is no cloud")
    return text


def _device_text(text: str) -> str:
    if not re.fullmatch(r"cpu|(cuda|npu)(:\d{1,3})?", text):
        raise ValueError("a device is cpu, cuda or npu; cuda and npu take an index, such as cuda:0")
    return text


def _pace_text(text: str) -> str:
    if text in {"auto", "off"}:
        return text
    with suppress(ValueError):
        if _LEAST_GBIT <= float(text) < inf:
            return text
    raise ValueError("a pace is auto, off, or a number of Gbit/s from 0.001, such as 9")


def null_word(value: object) -> object:
    """Return None for the words that stand for it: a variable or flag is text and has no null of its own."""
    return None if isinstance(value, str) and value.lower() in {"", "none", "null"} else value


def _comma_list(value: object) -> object:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


ListenAddress = Annotated[str, AfterValidator(_listen_address)]
TargetAddress = Annotated[str, AfterValidator(_target_address)]
SplitText = Annotated[str, AfterValidator(_split_text)]
BodySplitText = Annotated[str, AfterValidator(_split_text), AfterValidator(_body_split_text)]
PaceText = Annotated[str, BeforeValidator(str), AfterValidator(_pace_text)]
DeviceText = Annotated[str, AfterValidator(_device_text)]

OptionalListen = Annotated[ListenAddress | None, BeforeValidator(null_word)]
OptionalTarget = Annotated[TargetAddress | None, BeforeValidator(null_word)]
OptionalText = Annotated[str | None, BeforeValidator(null_word)]
OptionalMilliseconds = Annotated[Annotated[float, Field(gt=0)] | None, BeforeValidator(null_word)]
OptionalGbit = Annotated[
    Annotated[float, Field(ge=_LEAST_GBIT, allow_inf_nan=False)] | None, BeforeValidator(null_word)
]
OptionalCount = Annotated[Annotated[int, Field(ge=1)] | None, BeforeValidator(null_word)]
OptionalNumber = Annotated[Annotated[int, Field(ge=0)] | None, BeforeValidator(null_word)]
TextList = Annotated[list[str], BeforeValidator(_comma_list)]

Count = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
PositiveBytes = Annotated[ByteSize, Field(gt=0)]
