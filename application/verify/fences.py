"""Elections and claims of each partition in the log's order (invariant 4)."""

from dataclasses import dataclass
from typing import Any

from horolog.application.verify.ports import ScannedEvent
from horolog.application.verify.report import Place, Report


@dataclass(slots=True)
class Term:
    """The present term of a partition; ``token`` is ``None`` after a release."""

    token: int | None
    newest: int
    elected: Place


class Fences:
    """One term for each partition; the token of an election is the version of its event."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._terms: dict[int, Term] = {}

    def elected(self, event: ScannedEvent, state: dict[str, Any], *, told: bool = True) -> None:
        """The next election; ``told``: it is counted, and reported if it should not be."""
        here = event.place
        term = self._terms.get(state["partition"])
        if told and term is not None and event.version <= term.newest:
            self._report.violate(
                4,
                f"token {event.version} of partition {state['partition']} is not newer than"
                f" {term.newest}",
                term.elected,
                here,
            )
        newest = event.version if term is None else max(event.version, term.newest)
        self._terms[state["partition"]] = Term(event.version, newest, here)
        self._report.elections += told

    def released(self, state: dict[str, Any]) -> None:
        term = self._terms.get(state["partition"])
        if term is not None:
            term.token = None

    def claimed(self, event: ScannedEvent, state: dict[str, Any]) -> None:
        term = self._terms.get(state["partition"])
        if term is not None and state["token"] == term.token:
            return
        here = event.place
        if term is None:
            self._report.violate(
                4, f"claimed in partition {state['partition']}, which never had a leader", here
            )
            return
        why = (
            f"token {term.newest} was elected before"
            if term.token
            else "its leader had released it"
        )
        self._report.violate(
            4,
            f"claimed under token {state['token']} in partition {state['partition']}: {why}",
            term.elected,
            here,
        )
