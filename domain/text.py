"""Text made storable at the door.

Postgres stores no NUL in text and no lone surrogate in UTF-8. An error message that holds one must
not make the write of the failure itself fail, or the message would come back for ever.
"""

from horolog.domain.errors import InvalidPolicy

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def storable(text: str, limit: int = 8_192) -> str:
    """The text without what Postgres cannot store, cut to ``limit`` characters (and marked so)."""
    if len(text) > limit:
        text = f"{text[:limit]}… ({len(text) - limit} more characters)"
    if "\x00" in text:
        text = text.replace("\x00", _REPLACEMENT)
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def is_storable(text: object) -> bool:
    """Whether it is a text that Postgres can hold unchanged."""
    if not isinstance(text, str) or "\x00" in text:
        return False
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def stated(reason: object) -> str | None:
    """A reason as the log keeps it; ``InvalidPolicy`` for what is no text."""
    if reason is None:
        return None
    if not isinstance(reason, str):
        raise InvalidPolicy(f"reason={reason!r:.80} cannot be kept: a reason is a text, or None")
    return storable(reason)
