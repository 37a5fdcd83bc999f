"""A job's arguments: checked against its function, written as MessagePack, read again by its annotations.

They are written as `[1, args, kwargs]`, as they were given; the 1 is the version of this form.
"""

from __future__ import annotations

import hashlib
import inspect
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from inspect import Parameter
from itertools import chain
from typing import Any

import msgspec
from msgspec import Raw

from .._job import Job
from .._limits import JOB_VALUE_MAX
from .._validation.annotations import hints_of
from .._waits.functions import is_job, value_decoder
from .._waits.message import encode_other
from .._wire.values import Array
from ..errors import Discard, SignatureError
from ._options import NAMES

VERSION = 1


def encode_arguments(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bytes:
    """Raises `TypeError`, which names the argument, for what is not MessagePack-able; `ValueError` when they are too
    long.
    """
    try:
        encoded = _encode((VERSION, args, kwargs))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        which = next((key for key, value in [*enumerate(args, 1), *kwargs.items()] if not _is_encodable(value)), "")
        raise TypeError(f"{name}: its argument {which} cannot be encoded as MessagePack: {error}") from error
    if len(encoded) > JOB_VALUE_MAX:
        raise ValueError(
            f"{name}: a job's arguments have at most {JOB_VALUE_MAX} bytes, not {len(encoded)}; "
            "pass a reference to larger data"
        )
    return encoded


class Signature:
    """What a job's function takes.

    Raises `SignatureError` for a function whose parameters cannot all be given.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._whole = inspect.signature(function)
        told = f"{function.__qualname__}{self._whole}"
        try:
            hints = hints_of(function)
        except NameError as error:
            raise SignatureError(f"{told}: {error}; annotations are read when the application loads") from None
        parameters = self._whole.parameters
        own = [name for name in parameters if is_job(parameters[name], hints)]
        if len(own) > 1:
            raise SignatureError(f"{told}: {' and '.join(own)} cannot both be the job")
        self._job = own[0] if own else None
        taken = [parameter for name, parameter in parameters.items() if name != self._job]
        self._taken = self._whole.replace(parameters=taken)
        self._decoders = {name: _decoder(told, name, hints.get(name, Any)) for name in parameters if name != self._job}
        self._direct = _Direct(parameters, self._job, self._decoders, hints)
        self.returned: Any = hints.get("return", Any)

    def check(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Raises `TypeError` for arguments that the function does not take, by their number and names."""
        if not self._direct.takes(len(args), kwargs):
            self._bind(name, args, kwargs)

    def encode(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bytes:
        """The arguments, encoded. Raises `TypeError` for those that the function does not take, also by their types;
        otherwise as `encode_arguments`.
        """
        self.check(name, args, kwargs)
        encoded = encode_arguments(name, args, kwargs)
        if not self._direct.fits(args, kwargs):
            self._check_types(name, encoded)
        return encoded

    def _check_types(self, name: str, encoded: bytes) -> None:
        """Decodes them as the worker will that runs the job: what fails here would fail there, at every attempt."""
        told = _whole(encoded)
        if self._direct.takes(len(told.args), told.kwargs):
            with suppress(msgspec.MsgspecError, ValueError):  # the slow path says what is wrong
                self._direct.decode(told.args, told.kwargs, _NO_JOB)
                return
        self.named(name, encoded)

    def key(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
        """The same for the same arguments, in whatever way they are given. Raises `TypeError`."""
        bound = self._bind(name, args, kwargs)
        bound.apply_defaults()
        return hashlib.sha256(_encode_sorted((bound.args, bound.kwargs))).hexdigest()

    def decode(self, name: str, arguments: bytes, job: Job) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What to call the function with. Raises `Discard` for what no version of it can read, `TypeError` for what
        this one does not take.
        """
        try:
            told = _whole(arguments)
            if told.version == VERSION and self._direct.takes(len(told.args), told.kwargs):
                return self._direct.decode(told.args, told.kwargs, job)
        except (msgspec.MsgspecError, ValueError):  # the slow path says what is wrong
            pass
        return self._decode_bound(name, arguments, job)

    def named(self, name: str, arguments: bytes) -> dict[str, Any]:
        """All of them by the names of their parameters, with the defaults of those that were not given. Raises as
        `decode`.
        """
        args, kwargs = _read(arguments)
        bound = self._bind(name, tuple(args), kwargs)
        given = {key: self._decoded(name, key, value) for key, value in bound.arguments.items()}
        bound.apply_defaults()
        return {**bound.arguments, **given}

    def _decode_bound(self, name: str, arguments: bytes, job: Job) -> tuple[tuple[Any, ...], dict[str, Any]]:
        args, kwargs = _read(arguments)
        bound = self._bind(name, tuple(args), kwargs)
        values = OrderedDict(
            (key, job if key == self._job else self._decoded(name, key, bound.arguments[key]))
            for key in self._whole.parameters
            if key == self._job or key in bound.arguments
        )
        made = inspect.BoundArguments(self._whole, values)
        return made.args, made.kwargs

    def _bind(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> inspect.BoundArguments:
        try:
            return self._taken.bind(*args, **kwargs)
        except TypeError as error:
            meant = sorted(NAMES & kwargs.keys() - self._taken.parameters.keys())
            more = f"; options come first: .options({meant[0]}=…).enqueue(…)" if meant else ""
            raise TypeError(f"{name}{self._taken}: {error}{more}") from None

    def _decoded(self, name: str, key: str, value: Any) -> Any:
        decode = self._decoders[key]
        try:
            if isinstance(value, tuple):
                return tuple(map(decode, value))
            if isinstance(value, dict):
                return {each: decode(raw) for each, raw in value.items()}
            return decode(value)
        except (msgspec.MsgspecError, ValueError) as error:
            raise TypeError(f"{name}: its argument {key}: {error}") from None


class _Direct:
    """How nearly all arguments reach the parameters: one for each, and none for `*args` or `**kwargs`.

    Binding them with `inspect`, and reading each one separately, takes ten times as long. This knows only valid
    arguments: the rest is bound, so that each fault is reported in one place.
    """

    def __init__(
        self,
        parameters: Mapping[str, Parameter],
        job: str | None,
        decoders: Mapping[str, Callable[[Raw], Any]],
        hints: Mapping[str, Any],
    ) -> None:
        taken = [parameter for name, parameter in parameters.items() if name != job]
        places = [parameter.name for parameter in taken if parameter.kind in _BY_PLACE]
        self._job = job
        self._places = places
        self._kinds = {name: hints.get(name, Any) for name in parameters if hints.get(name, Any) in _EXACT}
        self._by_place = [decoders[name] for name in places]
        self._by_name = {each.name: decoders[each.name] for each in taken if each.kind in _BY_NAME}
        self._required = {each.name for each in taken if each.default is Parameter.empty and each.kind not in _VARIADIC}
        # This many can be passed without names; none if a name is needed.
        self._fewest = len(self._required) if self._required.issubset(places) else len(places) + 1
        self._job_place = len(places) + 1  # after all others: it is passed by name
        if job is not None and parameters[job].kind in _BY_PLACE:
            before = list(parameters)[: list(parameters).index(job)]
            self._job_place = len(before)
            if parameters[job].kind is Parameter.POSITIONAL_ONLY:
                self._fewest = max(self._fewest, len(before))
                self._required.update(before)

    def takes(self, count: int, named: Mapping[str, Any]) -> bool:
        """Whether this number of positional arguments, and these named ones, can be passed directly."""
        if not named:
            return self._fewest <= count <= len(self._places)
        names, places = named.keys(), self._places[:count]
        return (
            count <= len(self._places)
            and names <= self._by_name.keys()
            and names.isdisjoint(places)
            and self._required <= names | places
        )

    def fits(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> bool:
        """Whether all values have, without a doubt, the types of their parameters: most are text and numbers."""
        if len(args) > len(self._places):
            return False
        kinds = self._kinds
        for name, value in chain(zip(self._places, args, strict=False), named.items()):
            kind = kinds.get(name)
            if kind is not Any and type(value) is not kind:
                return False
        return True

    def decode(self, args: list[Raw], named: Mapping[str, Raw], job: Job) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Only what it takes. Raises `MsgspecError` for an argument that is not of its parameter's type."""
        values = [decode(raw) for decode, raw in zip(self._by_place, args, strict=False)]
        kwargs = {name: self._by_name[name](raw) for name, raw in named.items()} if named else {}
        if self._job is not None:
            if self._job_place <= len(values):
                values.insert(self._job_place, job)
            else:
                kwargs[self._job] = job
        return tuple(values), kwargs


class _Arguments(Array, frozen=True):
    version: int
    args: list[Raw]
    kwargs: dict[str, Raw]


_EXACT = (Any, str, int, float, bool, bytes)
_NO_JOB: Any = None

_BY_PLACE = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
_VARIADIC = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)

_encode = msgspec.msgpack.Encoder(enc_hook=encode_other).encode
_encode_sorted = msgspec.msgpack.Encoder(order="deterministic", enc_hook=encode_other).encode
_whole = msgspec.msgpack.Decoder(_Arguments).decode
_parts = msgspec.msgpack.Decoder(list[Raw]).decode
_version = msgspec.msgpack.Decoder(int).decode
_positional = msgspec.msgpack.Decoder(list[Raw]).decode
_named = msgspec.msgpack.Decoder(dict[str, Raw]).decode


def _decoder(told: str, name: str, annotation: Any) -> Callable[[Raw], Any]:
    try:
        return value_decoder(annotation)
    except TypeError as error:
        raise SignatureError(f"{told}: its parameter {name}: {error}") from None


def _is_encodable(value: object) -> bool:
    try:
        _encode(value)
    except Exception:
        return False
    return True


def _read(arguments: bytes) -> tuple[list[Raw], dict[str, Raw]]:
    try:
        version, *rest = _parts(arguments)
        if (known := _version(version)) != VERSION:
            raise Discard(f"its arguments are of version {known}, and this parkade reads version {VERSION}")
        args, kwargs = rest[:2]
        return _positional(args), _named(kwargs)
    except (msgspec.MsgspecError, ValueError) as error:
        raise Discard(f"its arguments are not in the form that enqueue writes: {error}") from error
