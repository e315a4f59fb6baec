"""Fire times that a schedule states but does not keep, and why: nothing is left out unsaid."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

OmissionReason = Literal["gap", "excluded", "holiday"]


@dataclass(frozen=True, slots=True, order=True)
class Omission:
    """A fire time left out: by a gap under ``gap="skip"``, an exclusion, or a dropped holiday.

    ``at`` is the instant (UTC) at which it would have run, for a gap the end of it; ``local`` the
    stated local time, without a zone. Compared by ``at`` and ``local``.
    """

    at: datetime
    local: datetime
    reason: OmissionReason = field(compare=False)
