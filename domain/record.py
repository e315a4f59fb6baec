"""``record``: a small value of the hot path; nobody changes one, and making one costs little.

To the type checker it is a frozen dataclass, and an assignment to a field is an error there. At run
time nothing stands in the way: a frozen dataclass sets each field through ``object.__setattr__``,
which makes one of a dozen fields six to eight times as expensive, and a run makes some twenty of
them between its claim and its end. What users are handed is frozen at run time as well, and a plain
``dataclass``.
"""

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """The class with slots, equality and a hash, made as cheaply as Python can."""
    return dataclass(slots=True, unsafe_hash=True)(cls)
