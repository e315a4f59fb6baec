"""Registering handlers, and a payload as their arguments."""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Annotated, Any, cast

import pytest
from pydantic import BaseModel, Field

from horolog.application.worker.handlers import Handlers
from horolog.application.worker.run import Run
from horolog.domain.errors import InvalidPayload, InvalidSetting
from horolog.domain.reference import Ref


class Plain:
    """Not anything pydantic knows."""


class Colour(Enum):
    RED = "red"


class Model(BaseModel):
    number: int


@dataclass
class Point:
    x: int


def accepted(function: Any, payload: dict[str, Any]) -> dict[str, Any]:
    return Handlers().handles("work")(function).arguments.accept(payload)


def test_a_registered_function_is_still_called_as_one() -> None:
    handlers = Handlers()

    @handlers.handles("add")
    def add(run: Run | None, a: int, b: int = 1) -> int:
        """Adds."""
        return a + b

    assert (add(None, 2), add.__doc__) == (3, "Adds.")
    assert handlers.by_name["add"] is add


def test_values_are_what_the_annotations_say() -> None:
    def work(
        run: Run, when: datetime, colour: Colour, model: Model, point: Point, many: tuple[int, ...],
        small: Annotated[int, Field(lt=10)] = 3, *, note: str | None = None,
    ) -> None: ...  # fmt: skip

    payload = {
        "when": "2027-01-01T00:00:00Z",
        "colour": "red",
        "model": {"number": 1},
        "point": {"x": 2},
        "many": [1, 2],
    }
    assert accepted(work, payload) == {
        "when": datetime(2027, 1, 1, tzinfo=UTC),
        "colour": Colour.RED,
        "model": Model(number=1),
        "point": Point(2),
        "many": (1, 2),
    }
    with pytest.raises(InvalidPayload, match=r"small: .*less than 10"):
        accepted(work, payload | {"small": 10})


def test_without_annotations_the_names_are_compared() -> None:
    def work(run, a, b=1): ...  # pyright: ignore[reportUnknownParameterType, reportMissingParameterType]

    assert accepted(work, {"a": object}) == {"a": object}
    with pytest.raises(InvalidPayload, match="a is missing; c is not one of its parameters"):
        accepted(work, {"c": 1})


def test_a_handler_may_take_whatever_comes() -> None:
    def everything(run: Run, **payload: Any) -> None: ...
    def typed(run: Run, a: int, **payload: Any) -> None: ...

    assert accepted(everything, {"x": 1}) == {"x": 1}
    assert accepted(typed, {"a": "1", "x": 2}) == {"a": 1, "x": 2}


def test_classes_that_nothing_validates_are_checked_by_their_type() -> None:
    def work(run: Run, thing: Plain) -> None: ...

    thing = Plain()
    assert accepted(work, {"thing": thing}) == {"thing": thing}
    with pytest.raises(InvalidPayload, match="thing: "):
        accepted(work, {"thing": 1})


def test_parameters_annotated_as_ref_keep_their_reference() -> None:
    def work(run: Run, a: Ref, b: Ref | None, c: str) -> None: ...

    handler = Handlers().handles("work")(work)
    assert handler.arguments.keeps_refs == {"a", "b"}


def test_the_handler_s_own_code_tells_whether_it_wants_the_last_result() -> None:
    def direct(run: Run) -> Any:
        return run.last_result

    def nested(run: Run) -> Any:
        return [run.last_result for _ in range(2)]

    def none(run: Run) -> None: ...

    wants = [Handlers().handles("x")(f).wants_last_result for f in (direct, nested, none)]
    assert wants == [True, True, False]


def test_one_function_may_have_several_names() -> None:
    handlers = Handlers()

    @handlers.handles("new")
    @handlers.handles("old")
    async def work(run: Run) -> None: ...

    assert handlers.by_name["new"].is_async
    assert handlers.by_name["new"].function is handlers.by_name["old"].function


def test_what_cannot_be_registered_is_refused_at_once() -> None:
    handlers = Handlers()

    @handlers.handles("taken")
    def taken(run: Run) -> None: ...

    def by_position(run: Run, a: int, /) -> None: ...
    def nothing() -> None: ...
    def generator(run: Run) -> Any:
        yield 1

    for name, function, why in (
        ("taken", nothing, "has a handler already"),
        ("not a name", nothing, "no job can be called"),
        ("a", nothing, "takes no run"),
        ("b", by_position, "by position only"),
        ("c", generator, "is a generator"),
    ):
        with pytest.raises(InvalidSetting, match=why):
            handlers.handles(name)(cast("Any", function))
    with pytest.raises(InvalidSetting, match="at least 1"):
        handlers.handles("d", concurrency=0)
    handlers.resolves("cards")(str)
    with pytest.raises(InvalidSetting, match="has a resolver already"):
        handlers.resolves("cards/")(str)


def test_an_annotation_that_means_nothing_is_found_at_the_start() -> None:
    handlers = Handlers()

    @handlers.handles("work")
    def work(run: Run, thing: "Missing") -> None: ...  # pyright: ignore[reportUndefinedVariable, reportUnknownParameterType] # noqa: F821

    with pytest.raises(InvalidSetting, match=r"'work' cannot be read: .*Missing"):
        handlers.prepare()
