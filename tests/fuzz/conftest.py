"""How long the fuzz goes on: ``make fuzz EXAMPLES=n``; a slice of it in the suite."""

import os
from collections.abc import Callable

from hypothesis import HealthCheck, settings

from horolog import HorologError

EXAMPLES = int(os.environ.get("HOROLOG_FUZZ_EXAMPLES", "60"))

fuzzed = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
"""The fixtures are servers and folders, which the examples share on purpose."""


def refusal(act: Callable[[], object], kind: type[Exception] = HorologError) -> str | None:
    """What it was refused with, in words; None where it was not. Another error fails the test."""
    try:
        act()
    except kind as error:
        assert str(error), "a refusal has words"  # noqa: PT017 - of any message
        return str(error)
    return None
