"""Sealed values: what of a job is a person's data stands in events and rows as cipher text only.

A sealed payload or result is the JSON object ``{"$sealed": TOKEN}``, a sealed error message the
text ``$sealed:TOKEN``. A token is ``v1.KEY.PLACE.DATA``: the id of the subject's key, the stream
that the value was sealed for (a token that was copied to another job is refused there), and the
cipher text. Neither names the subject.

Everything that folds, compares, copies, archives or verifies events treats them as the values that
they are. So nothing has to be rewritten when the key is destroyed: the log stays as it was, hash
chain and all, and the values can be read by nobody any more.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

SEALED: Final = "$sealed"
ERASED: Final = "$erased"
RESERVED: Final = frozenset({SEALED, ERASED})
"""Names that a payload cannot have at its top: they would be taken for a sealed one."""

MAX_SUBJECT_LENGTH: Final = 256

_FORM = r"v1\.([0-9a-f]{32})\.([0-9a-f]{32})\.([A-Za-z0-9_-]+)"
_WHOLE = re.compile(_FORM)
_TEXT = re.compile(r"\$sealed:" + _FORM)
# In a text, a shortened one too: what explains a run quotes results and errors, cut to a line.
_WITHIN = re.compile(
    r'\{"\$sealed": ?"v1\.([0-9a-f]{32})\.[0-9a-f]{32}\.[A-Za-z0-9_-]*(?:"\}|…)'
    r"|\$sealed:v1\.([0-9a-f]{32})\.[0-9a-f]{32}\.[A-Za-z0-9_-]*…?"
)


@dataclass(frozen=True, slots=True)
class Token:
    """A sealed value, taken apart: whose key, where it belongs, and the cipher text."""

    key: UUID
    place: UUID
    data: str

    def __str__(self) -> str:
        return f"v1.{self.key.hex}.{self.place.hex}.{self.data}"


def envelope(token: Token) -> dict[str, str]:
    """A sealed payload or result, as events hold it."""
    return {SEALED: str(token)}


def sealed_text(token: Token) -> str:
    """A sealed message, as events hold it."""
    return f"{SEALED}:{token}"


def is_sealed(payload: Mapping[str, Any]) -> bool:
    """Whether a payload is sealed: one look-up, being part of every run."""
    return SEALED in payload


def token_of(value: object) -> Token | None:
    """The token of a sealed payload, result or message; ``None`` for what is not sealed."""
    if isinstance(value, str):
        return _parsed(_TEXT.fullmatch(value)) if value.startswith(SEALED) else None
    if isinstance(value, Mapping) and len(value) == 1 and SEALED in value:  # pyright: ignore[reportUnknownArgumentType]
        inner: object = value[SEALED]  # pyright: ignore[reportUnknownVariableType]
        return _parsed(_WHOLE.fullmatch(inner)) if isinstance(inner, str) else None
    return None


def keys_within(text: str) -> set[UUID]:
    """The keys of all that is sealed in a text."""
    return {UUID(hex=a or b) for a, b in _WITHIN.findall(text)} if SEALED in text else set()


def reworded(text: str, word: Callable[[UUID], str]) -> str:
    """The text with a word, told the key, in the place of whatever is sealed in it."""
    return _WITHIN.sub(lambda found: word(UUID(hex=found[1] or found[2])), text)


def _parsed(found: re.Match[str] | None) -> Token | None:
    return None if found is None else Token(UUID(hex=found[1]), UUID(hex=found[2]), found[3])
