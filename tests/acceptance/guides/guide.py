"""A document that is followed, and what its commands answer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.acceptance.guides.desk import Desk


@dataclass(frozen=True)
class Says:
    """What an answer has, and how the command ends."""

    words: tuple[str, ...] = ()
    status: int = 0
    typed: str = ""  # what it asks for


def nothing(desk: Desk) -> None:
    """For a guide that takes nothing for granted."""
    del desk


@dataclass(frozen=True)
class Guide:
    """A document; commands are named as it has them."""

    page: str
    prepare: Callable[[Desk], None] = nothing
    says: Mapping[str, Says] = field(default_factory=dict[str, Says])
    before: Mapping[str, Callable[[Desk], None]] = field(
        default_factory=dict[str, Callable[[Desk], None]]
    )
    then: Callable[[Desk], None] = nothing
    starts: tuple[str, ...] = ()  # processes that the prose has and that are started
    whole: bool = True  # the suite takes it too, all but its processes
