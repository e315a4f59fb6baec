"""The migrations of this release, and what each says of itself in its comments.

-- horolog: admits 8       code that knows migration 8 and none after it goes on working when
                           this is applied; unless said, only code that knows this one does
-- horolog: dispensable    this release works before it is applied (an index, say)
-- horolog: online         not one transaction, but steps
-- step                    what follows, up to the next one, is a transaction of its own; it may
                           be run again after a kill, so it says IF NOT EXISTS
-- step until none         run again and again, until it changes no row: a batch with a LIMIT
-- step for each           what it returns is run, each row a statement and a transaction of its
                           own: the indexes of the partitions that there are, say
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from typing import NamedTuple

_SAID = re.compile(r"^-- horolog: (\w+) ?(\d*)$", re.MULTILINE)
_STEP = re.compile(r"^-- step( until none| for each)?$", re.MULTILINE)


class Step(NamedTuple):
    """A statement of an online migration; ``repeated`` until it changes nothing; ``telling`` which
    statements are to be run."""

    text: str
    repeated: bool
    telling: bool


@dataclass(frozen=True, slots=True)
class Migration:
    """``number`` from 1 without gaps; ``text`` the SQL with its placeholders."""

    number: int
    name: str
    text: str

    @property
    def digest(self) -> str:
        return sha256(self.text.encode()).hexdigest()

    @property
    def admits(self) -> int:
        """The last migration that the oldest code knows that may work on the schema after this."""
        return int(self._said().get("admits") or self.number)

    @property
    def dispensable(self) -> bool:
        return "dispensable" in self._said()

    @property
    def online(self) -> bool:
        return "online" in self._said()

    @property
    def steps(self) -> list[Step]:
        parts = _STEP.split(self.text)[1:]
        return [
            Step(text, mark == " until none", mark == " for each")
            for mark, text in zip(parts[::2], parts[1::2], strict=True)
        ]

    def _said(self) -> dict[str, str]:
        return dict(_SAID.findall(self.text))


def migrations() -> list[Migration]:
    """Every migration of this release, in order."""
    return sorted(_read(), key=lambda migration: migration.number)


def _read() -> Iterator[Migration]:
    folder = files("horolog.infrastructure.postgres") / "migrations"
    for file in folder.iterdir():
        if file.name.endswith(".sql"):
            number, _, name = file.name.removesuffix(".sql").partition("_")
            yield Migration(int(number), name, file.read_text())
