"""What an importer gives: declared jobs, and remarks on what is different."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from re import sub
from typing import Any, Literal
from uuid import UUID

from horolog.application.commands.defining import define
from horolog.domain.errors import HorologError
from horolog.interface.job_file import read_job

_NOBODY = UUID(int=0)


@dataclass(frozen=True, slots=True)
class Remark:
    """``entry`` is the job or the line that it is about. What is "refused" was not imported; what
    "differs" was, and means something else than it did."""

    entry: str
    kind: Literal["refused", "differs"]
    said: str


@dataclass(slots=True)
class Imported:
    """The jobs as tables of a file for `job apply`, and the remarks, in the order of the source."""

    jobs: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    remarks: list[Remark] = field(default_factory=list[Remark])

    @property
    def refused(self) -> int:
        return sum(remark.kind == "refused" for remark in self.remarks)

    def refuse(self, entry: str, said: str) -> None:
        self.remarks.append(Remark(entry, "refused", said))

    def differs(self, entry: str, said: str) -> None:
        self.remarks.append(Remark(entry, "differs", said))

    def declare(self, entry: str, job: Mapping[str, Any]) -> None:
        """Takes a job in, unless Horolog would refuse it."""
        table = {name: value for name, value in job.items() if value is not None}
        try:
            define(read_job(table), _NOBODY, datetime.now(UTC))
        except HorologError as error:
            self.refuse(entry, str(error))
            return
        if any(known["key"] == table["key"] for known in self.jobs):
            self.refuse(entry, f"another entry has the key {table['key']!r}: it is declared once")
            return
        self.jobs.append(table)


def key_of(prefix: str, *parts: str) -> str:
    """A key that people can read and that is the same at the next import."""
    slug = sub(r"[^A-Za-z0-9]+", "-", parts[0]).strip("-").lower()[:40]
    digest = blake2b("\0".join(parts).encode(), digest_size=4).hexdigest()
    return f"{prefix}-{slug}-{digest}"
