"""The payload as a handler's arguments: checked against its signature, once built, at every run.

A payload that does not fit fails the same way every time, so it is told apart from what the handler
raises: it never reaches the handler. Handlers without annotations take a fast path that compares
names only.
"""

import inspect
from collections.abc import Callable
from functools import cached_property
from typing import Annotated, Any, NotRequired, get_args, get_origin, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError

# pydantic takes no TypedDict of the standard library before Python 3.12.
from typing_extensions import TypedDict

from horolog.domain.errors import InvalidPayload, InvalidSetting
from horolog.domain.reference import Ref

_KEYWORD = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Arguments:
    """How a payload becomes the keyword arguments of ``function``, after its first, the run."""

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self._function = function
        self._name = name
        parameters = list(inspect.signature(function).parameters.values())
        if not parameters or parameters[0].kind in (
            inspect.Parameter.KEYWORD_ONLY,
            inspect.Parameter.VAR_KEYWORD,
        ):
            raise InvalidSetting(
                f"the handler {name!r} takes no run: its first parameter is the Run,"
                " and the payload's keys follow as keywords"
            )
        rest = parameters[1:] if parameters[0].kind is not inspect.Parameter.VAR_POSITIONAL else []
        for parameter in rest:
            if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
                raise InvalidSetting(
                    f"the handler {name!r} takes {parameter.name!r} by position only;"
                    " the payload's keys are passed as keywords"
                )
        named = [parameter for parameter in rest if parameter.kind in _KEYWORD]
        self._open = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in rest)
        self._names = frozenset(parameter.name for parameter in named)
        self._required = frozenset(
            parameter.name for parameter in named if parameter.default is inspect.Parameter.empty
        )

    def accept(self, payload: dict[str, Any]) -> dict[str, Any]:
        """The arguments, or ``InvalidPayload``, which names what does not fit."""
        adapter = self._adapter
        if adapter is None:
            return self._by_name(payload)
        try:
            return adapter.validate_python(payload)
        except ValidationError as error:
            places = "; ".join(
                f"{'.'.join(str(part) for part in found['loc'])}: {found['msg']}"
                for found in error.errors(include_url=False, include_input=False)[:5]
            )
            raise InvalidPayload(
                f"the payload does not fit the handler {self._name!r}: {places}"
            ) from error

    def prepare(self) -> None:
        """Builds what ``accept`` needs; ``InvalidSetting`` for annotations nobody can check."""
        _ = self._adapter

    @cached_property
    def keeps_refs(self) -> frozenset[str]:
        """The parameters that are annotated as ``Ref``: they get the reference itself."""
        return frozenset(name for name, hint in self._hints.items() if _is_ref(hint))

    def _by_name(self, payload: dict[str, Any]) -> dict[str, Any]:
        keys = payload.keys()
        if keys >= self._required and (self._open or keys <= self._names):
            return payload
        missing = sorted(self._required - keys)
        surplus = [] if self._open else sorted(keys - self._names)
        wrong = [f"{name} is missing" for name in missing]
        wrong += [f"{name} is not one of its parameters" for name in surplus]
        raise InvalidPayload(
            f"the payload does not fit the handler {self._name!r}: {'; '.join(wrong[:5])}"
        )

    @cached_property
    def _hints(self) -> dict[str, Any]:
        function = self._function
        target = function if inspect.isroutine(function) else type(function).__call__
        try:
            hints = get_type_hints(inspect.unwrap(target), include_extras=True)
        except Exception as error:  # an annotation may run any code
            raise InvalidSetting(
                f"an annotation of the handler {self._name!r} cannot be read: {error}"
            ) from error
        return {name: hints[name] for name in self._names if name in hints}

    @cached_property
    def _adapter(self) -> TypeAdapter[dict[str, Any]] | None:
        hints = self._hints
        if all(hint is Any or hint is object for hint in hints.values()):
            return None
        fields = {
            name: hints.get(name, Any)
            if name in self._required
            else NotRequired[hints.get(name, Any)]
            for name in self._names
        }
        shape: Any = TypedDict("shape", fields)  # pyright: ignore[reportArgumentType, reportGeneralTypeIssues]
        shape.__pydantic_config__ = ConfigDict(
            extra="allow" if self._open else "forbid", arbitrary_types_allowed=True
        )
        try:
            return TypeAdapter(shape)
        except (PydanticSchemaGenerationError, PydanticUserError) as error:
            raise InvalidSetting(
                f"an annotation of the handler {self._name!r} cannot be checked: {error}"
            ) from error


def _is_ref(hint: Any) -> bool:
    if get_origin(hint) is Annotated:
        return _is_ref(get_args(hint)[0])
    return hint is Ref or Ref in get_args(hint)
