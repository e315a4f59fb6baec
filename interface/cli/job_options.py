"""The options that state a job's payload and policies: of `job register` and `job update`.

An option that was not given is absent, so that `update` changes nothing that was not named.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from horolog.interface.cli.completing import queue_names
from horolog.interface.cli.seconds import SECONDS

if TYPE_CHECKING:
    from horolog.domain.retry import Retry

F = TypeVar("F", bound=Callable[..., Any])

RETRY = (
    "max_attempts",
    "retry_base",
    "retry_factor",
    "retry_cap",
    "retry_jitter",
    "retry_max_elapsed",
)
POLICIES = (
    "queue",
    "priority",
    "timeout",
    "overlap",
    "overlap_max",
    "catch_up",
    "catch_up_window",
    "catch_up_rate",
    "concurrency_limit",
    "rate_limit",
    "on_unknown",
    "start_within",
    "finish_within",
    "expect_success_by",
    "owner",
)

_OPTIONS = [
    click.option(
        "--payload", metavar="JSON", help="The handler's arguments; @FILE or - reads them."
    ),
    click.option(
        "--queue",
        metavar="Q",
        shell_complete=queue_names,
        help="Which workers run it.  [default: default]",
    ),
    click.option("--priority", type=int, metavar="N", help="-100 to 100.  [default: 0]"),
    click.option("--timeout", type=SECONDS, metavar="S", help="The longest that a run may take."),
    click.option(
        "--overlap",
        type=click.Choice(["allow", "skip", "buffer_one", "buffer_all", "cancel_other"]),
        help="What a fire time does while a run is unfinished.  [default: allow]",
    ),
    click.option(
        "--overlap-max", type=int, metavar="N", help="How many buffer_all keeps.  [default: 100]"
    ),
    click.option(
        "--catch-up",
        type=click.Choice(["latest", "earliest", "all", "skip"]),
        help="Which fire times of an outage still run.  [default: latest]",
    ),
    click.option(
        "--catch-up-window", type=SECONDS, metavar="S", help="How late a run may still start."
    ),
    click.option(
        "--catch-up-rate", type=float, metavar="N", help="Of a backlog, so many a second."
    ),
    click.option(
        "--concurrency-limit", type=int, metavar="N", help="Runs of one --concurrency-key at once."
    ),
    click.option(
        "--rate-limit", type=float, metavar="N", help="Runs of one --concurrency-key a second."
    ),
    click.option(
        "--on-unknown",
        type=click.Choice(["retry", "dead_letter"]),
        help="When nobody can say whether a lost run took effect.  [default: retry]",
    ),
    click.option(
        "--start-within", type=SECONDS, metavar="S", help="A run is late that begins later."
    ),
    click.option("--finish-within", type=SECONDS, metavar="S", help="So is one that ends later."),
    click.option(
        "--expect-success-by",
        type=SECONDS,
        metavar="S",
        help="Say so when nothing succeeds so long.",
    ),
    click.option("--owner", metavar="WHO", help="Who looks at its dead letters."),
    click.option("--label", "labels", multiple=True, metavar="K=V", help="Repeatable."),
    click.option(
        "--max-attempts",
        "--retry-max-attempts",
        type=int,
        metavar="N",
        help="The first try included.  [default: 5]",
    ),
    click.option("--retry-base", type=SECONDS, metavar="S", help="The first delay.  [default: 1]"),
    click.option("--retry-factor", type=float, metavar="F", help="Its growth.  [default: 2]"),
    click.option("--retry-cap", type=SECONDS, metavar="S", help="The longest.  [default: 3600]"),
    click.option(
        "--retry-jitter", type=float, metavar="F", help="0 to 1, added at random.  [default: 0.1]"
    ),
    click.option(
        "--retry-max-elapsed",
        type=float,
        metavar="S",
        help="No attempt begins later than so long after the first.",
    ),
]


def job_options(function: F) -> F:
    """Adds the options; the function gets them under their names."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def change_options_of_a_job(function: F) -> F:
    """The same options for `job update`. Its help says no defaults: what is not given stays."""
    function = job_options(function)
    options: list[click.Option] = getattr(function, "__click_params__", [])
    for option in options:
        option.help = (option.help or "").partition("  [default: ")[0]
    return function


def taken_policies(options: dict[str, Any], *, retry: "Retry | None" = None) -> dict[str, Any]:
    """Takes payload and policies out of ``options``: those that were given, as the API takes them.

    A retry option changes that one value of ``retry``. Raises ``InvalidPayload``,
    ``InvalidPolicy``.
    """
    given: dict[str, Any] = {
        name: value for name in POLICIES if (value := options.pop(name)) is not None
    }
    payload = options.pop("payload")
    if payload is not None:
        given["payload"] = read_payload(payload)
    labels: tuple[str, ...] = options.pop("labels")
    if labels:
        given["labels"] = read_labels(labels)
    changed = {
        name.removeprefix("retry_"): value
        for name in RETRY
        if (value := options.pop(name)) is not None
    }
    if changed:
        given["retry"] = _retry(changed, retry)
    return given


def read_payload(text: str) -> dict[str, Any]:
    """A JSON object, from the text, a file (``@path``) or standard input (``-``)."""
    from horolog.domain.errors import InvalidPayload

    if text == "-":
        text = sys.stdin.read()
    elif text.startswith("@"):
        try:
            text = Path(text[1:]).read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidPayload(f"--payload {text}: cannot be read: {error}") from None
    try:
        payload: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        shown = text if len(text) <= 40 else f"{text[:40]}…"
        raise InvalidPayload(f"--payload {shown!r} is not JSON: {error}") from None
    if not isinstance(payload, dict):
        raise InvalidPayload(
            f"--payload is a JSON {type(payload).__name__}: it takes an object whose names are"
            ' the handler\'s arguments, such as {"amount": 10}'
        )
    return cast("dict[str, Any]", payload)


def read_labels(labels: tuple[str, ...]) -> dict[str, str]:
    """``K=V`` pairs."""
    pairs = [label.partition("=") for label in labels]
    for name, equals, _ in pairs:
        if not equals or not name:
            raise click.UsageError(
                f"--label {name!r} is no pair such as region=us", click.get_current_context()
            )
    return {name: value for name, _, value in pairs}


def _retry(changed: dict[str, Any], present: "Retry | None") -> "Retry":
    from horolog.domain.retry import Retry

    values = {} if present is None else present.model_dump()
    return Retry(**(values | changed))
