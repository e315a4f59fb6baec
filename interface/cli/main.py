"""The entry point of the command line, and what its exit status says.

    0  done
    1  refused (or: `verify` found a violation, `doctor` something that needs attention)
    2  wrong usage: an unknown command or option, a setting that cannot be read
    3  a service is away

Whatever is refused is one line on stderr and no traceback. Standard output carries the answer and
nothing else, so that it can be piped; with ``--json`` it is JSON.
"""

import logging
import os
import sys
from collections.abc import Sequence
from typing import Final

import click

from horolog.interface.cli.lazy_group import Lazy, LazyGroup

DONE: Final = 0
REFUSED: Final = 1
USAGE: Final = 2
AWAY: Final = 3
INTERRUPTED: Final = 130

_CLI = "horolog.interface.cli"

SECTIONS: Final = {
    "First steps": {
        "demo": Lazy(f"{_CLI}.demo:demo", "Watch jobs of every kind run; ends with an account."),
        "dev": Lazy(
            f"{_CLI}.dev:dev", "Servers that keep their data, a scanner, a worker, the web page."
        ),
        "schedule": Lazy(f"{_CLI}.schedule:schedule", "Preview when a schedule fires."),
    },
    "Jobs": {
        "job": Lazy(f"{_CLI}.jobs:job", "Register, look at and change jobs."),
        "occurrence": Lazy(f"{_CLI}.occurrences:occurrence", "The execution log."),
        "dead-letters": Lazy(f"{_CLI}.dead_letters:dead_letters", "What nobody will retry."),
        "alert": Lazy(f"{_CLI}.alerts:alert", "Be told of dead letters and missed deadlines."),
        "inbox": Lazy(
            f"{_CLI}.inbox:inbox", "Commands of clients' transactions; what was refused."
        ),
        "queue": Lazy(f"{_CLI}.queues:queue", "Limits of queues, at once and a second."),
        "forget": Lazy(f"{_CLI}.forget:forget", "Erase the data of a person."),
        "log": Lazy(f"{_CLI}.log:log", "The events, in their order."),
        "audit": Lazy(f"{_CLI}.audit:audit", "What ran, what did not, and what was due when."),
    },
    "Moving here": {
        "import": Lazy(f"{_CLI}.importing:importing", "A crontab, celery-beat, APScheduler."),
    },
    "Running it": {
        "migrate": Lazy(f"{_CLI}.processes:migrate", "Create or upgrade the schema."),
        "roles": Lazy(f"{_CLI}.roles:roles", "Least privilege: a role for each kind of process."),
        "scanner": Lazy(f"{_CLI}.processes:scanner", "One scanner process."),
        "worker": Lazy(f"{_CLI}.processes:worker", "One worker process."),
        "web": Lazy(f"{_CLI}.web:web", "The web page and the HTTP API."),
        "doctor": Lazy(f"{_CLI}.doctor:doctor", "What needs attention, and what to do."),
        "completion": Lazy(
            f"{_CLI}.completion:completion", "Complete commands and keys in bash, zsh, fish."
        ),
        "metrics": Lazy(f"{_CLI}.metrics:metrics", "The same as Prometheus' text."),
        "verify": Lazy(f"{_CLI}.verify:verify", "Check the whole log against the invariants."),
        "retention": Lazy(f"{_CLI}.retention:retention", "Prune old finished occurrences."),
        "privacy": Lazy(f"{_CLI}.privacy:privacy", "Master keys of encrypted data."),
        "projection": Lazy(f"{_CLI}.projection:projection", "Rebuild read models from the log."),
    },
}


def _show_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"horolog {version('horolog')}")
        ctx.exit()


cli = LazyGroup(
    name="horolog",
    sections=SECTIONS,
    aliases={
        "jobs": "job",
        "alerts": "alert",
        "occurrences": "occurrence",
        "schedules": "schedule",
    },
    help="An event-sourced job scheduler: every change in a job's life is an event in a log.",
    epilog="New here? `horolog demo`. Then `horolog dev`, and in a second terminal"
    " `horolog job register echo --every 2` and `horolog log --follow`.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    params=[
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show_version,
            help="Show the version and exit.",
        )
    ],
)


COMPLETE: Final = "_HOROLOG_COMPLETE"
"""Where the script of `horolog completion` says what is wanted; click reads it."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs one command and exits with its status."""
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit status."""
    from horolog.domain.errors import HorologError

    # What drivers log is told in our own words where it matters; processes set up logging.
    if not logging.getLogger().handlers:
        logging.getLogger().addHandler(logging.NullHandler())
    if COMPLETE in os.environ:
        from horolog.interface.cli.shells import know_them

        know_them()
    try:
        status = cli.main(arguments, prog_name="horolog", standalone_mode=False, color=_colour())
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help() if error.ctx else error.format_message(), err=True)
        return USAGE
    except click.UsageError as error:
        return _refuse(_usage_line(error), USAGE)
    except click.ClickException as error:
        return _refuse(error.format_message(), error.exit_code)
    except HorologError as error:
        return _refuse(str(error), status_of(error))
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has seen enough (`| head`). Python would complain once more
        # when it flushes standard output at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    return status if isinstance(status, int) else DONE


def status_of(error: Exception) -> int:
    """The exit status that tells a refusal from wrong usage and from a service that is away.

    A database without the schema, or with a newer one, answers: that is a refusal. A process that
    ended under us has told why by its own status.
    """
    from horolog.domain.errors import (
        InvalidSetting,
        QueueUnavailable,
        SchemaMissing,
        SchemaTooNew,
        StoreUnavailable,
    )
    from horolog.interface.processes.children import ProcessFailed

    if isinstance(error, ProcessFailed):
        return error.status if error.status in (USAGE, AWAY) else REFUSED
    if isinstance(error, SchemaMissing | SchemaTooNew):
        return REFUSED
    if isinstance(error, StoreUnavailable | QueueUnavailable):
        return AWAY
    return USAGE if isinstance(error, InvalidSetting) else REFUSED


def _colour() -> bool | None:
    """No colour where NO_COLOR is set, a convention that rich follows and click does not."""
    return False if os.environ.get("NO_COLOR") else None


def _usage_line(error: click.UsageError) -> str:
    message = error.format_message().strip().rstrip(".")
    if error.ctx is None:
        return message
    return f"{message} (see {error.ctx.command_path} --help)"


def _refuse(message: str, status: int) -> int:
    from horolog.interface.cli.rendering import visible

    click.echo(f"horolog: {visible(' '.join(message.split()))}", err=True)
    return status


if __name__ == "__main__":
    main()
