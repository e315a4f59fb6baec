"""Answers as they are read out: what is sealed in them is shown as such, as erased, or opened.

An answer is walked only to find sealed values; one that has none comes back as it is. What is
sealed reads ``{"$sealed": true}`` or ``(sealed)``, what is erased ``{"$erased": true}`` or
``(erased)``: neither cipher text nor data. Only who asks for it (``reveal``) and has the master key
reads the data itself.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, is_dataclass, replace
from datetime import date, datetime
from functools import cache
from types import UnionType
from typing import Any, Final, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints
from uuid import UUID

from pydantic import BaseModel

from horolog.application.privacy.ports import Keyring
from horolog.domain.sealed import ERASED, SEALED, keys_within, reworded, token_of

T = TypeVar("T")

SHOWN_SEALED: Final = "(sealed)"
SHOWN_ERASED: Final = "(erased)"

_NEVER_SEALED: Final = frozenset({int, float, bool, type(None), UUID, datetime, date})


class ReadingOut:
    """Reads answers out for one client."""

    def __init__(self, keyring: Keyring, *, reveal: bool) -> None:
        self._keyring = keyring
        self._reveal = reveal

    def __call__(self, answer: T) -> T:
        """The answer, a list of answers, or any JSON value, without cipher text.

        Raises ``StoreUnavailable``; with ``reveal`` also ``NoMasterKey``.
        """
        keys: set[UUID] = set()
        if _may_hold_sealed(answer):
            _walked(answer, _Collected(keys))
        if not keys:
            return answer
        erased = self._keyring.erased(keys)
        return cast("T", _walked(answer, lambda value: self._shown(value, erased)))

    def _shown(self, value: object, erased: Collection[UUID]) -> object:
        token = token_of(value)
        if token is None:
            assert isinstance(value, str)
            return reworded(value, lambda key: SHOWN_ERASED if key in erased else SHOWN_SEALED)
        is_text = isinstance(value, str)
        if token.key not in erased:
            if not self._reveal:
                return SHOWN_SEALED if is_text else {SEALED: True}
            opened = self._keyring.open(token)
            if opened is not None:
                return opened.value
        return SHOWN_ERASED if is_text else {ERASED: True}


class _Collected:
    """Takes down the keys of what is sealed, and leaves it as it is."""

    def __init__(self, keys: set[UUID]) -> None:
        self._keys = keys

    def __call__(self, value: object) -> object:
        token = token_of(value)
        if token is not None:
            self._keys.add(token.key)
        elif isinstance(value, str):
            self._keys |= keys_within(value)
        return value


def _may_hold_sealed(*values: object) -> bool:
    """Whether a walk may find anything: a page of answers is mostly numbers, ids and instants, and
    looking costs a tenth of a walk."""
    for value in values:
        kind = type(value)
        if kind is str:
            if SEALED in cast("str", value):
                return True
        elif kind not in _NEVER_SEALED and _may_hold_within(value, kind):
            return True
    return False


def _may_hold_within(value: object, kind: type) -> bool:
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, object]", value)
        return SEALED in items or _may_hold_sealed(*items.values())
    if isinstance(value, list | tuple):
        return _may_hold_sealed(*cast("list[object]", value))
    names = _field_names(kind)
    return names is None or _may_hold_sealed(*[getattr(value, name) for name in names])


@cache
def _field_names(kind: Any) -> tuple[str, ...] | None:
    """What is walked of a model or a dataclass, but for what its type keeps from being sealed;
    ``None`` for a kind that is not known."""
    if issubclass(kind, BaseModel):
        names = tuple(kind.model_fields)
    elif is_dataclass(kind):
        names = tuple(each.name for each in fields(kind) if each.init)
    else:
        return None
    types = get_type_hints(kind)
    return tuple(name for name in names if not _is_never_sealed(types[name]))


def _is_never_sealed(stated: Any) -> bool:
    """Whether a type has values of these kinds only: half of what a job says of itself."""
    origin, parts = get_origin(stated), get_args(stated)
    if origin is Literal:
        return True
    if origin in (Union, UnionType):
        return all(map(_is_never_sealed, parts))
    if origin is not None or not isinstance(stated, type):
        return False
    return stated in _NEVER_SEALED or _field_names(stated) == ()


def _walked(value: object, on_sealed: Callable[[object], object]) -> object:
    """The value with ``on_sealed`` in the place of what is sealed; the same object if there is
    none."""
    match value:
        case str():
            return on_sealed(value) if SEALED in value else value
        case Mapping():
            items = cast("Mapping[Any, object]", value)
            if SEALED in items:
                return on_sealed(items) if token_of(items) is not None else items
            return _changed(items, on_sealed)
        case list() | tuple():
            elements = cast("list[object] | tuple[object, ...]", value)
            walked = [_walked(element, on_sealed) for element in elements]
            if all(a is b for a, b in zip(walked, elements, strict=True)):
                return elements
            return walked if isinstance(elements, list) else tuple(walked)
        case BaseModel():
            old = {name: getattr(value, name) for name in type(value).model_fields}
            new = _changed(old, on_sealed)
            return value if new is old else value.model_copy(update=new)
        case _ if is_dataclass(value) and not isinstance(value, type):
            old = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
            new = _changed(old, on_sealed)
            return value if new is old else replace(value, **new)
        case _:
            return value


def _changed(old: Mapping[Any, object], on_sealed: Callable[[object], object]) -> Any:
    new = {name: _walked(inner, on_sealed) for name, inner in old.items()}
    return old if all(new[name] is inner for name, inner in old.items()) else new
