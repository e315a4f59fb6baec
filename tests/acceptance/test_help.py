"""Help is there at once and everywhere."""

import subprocess
import sys
from collections.abc import Iterator
from typing import get_args

import click

from horolog.domain.definition import CatchUp, JobDefinition, Overlap
from horolog.domain.job import JobStatus
from horolog.domain.occurrence import Phase
from horolog.domain.schedule import Fold, Gap
from horolog.interface.cli.main import cli


def leaves(
    command: click.Command, path: tuple[str, ...] = ()
) -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, by its full name."""
    if not isinstance(command, click.Group):
        yield " ".join(path), command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from leaves(found, (*path, name))


def test_every_command_has_help_json_and_a_description() -> None:
    found = dict(leaves(cli))
    assert len(found) >= 25
    for name, command in found.items():
        context = click.Context(command, info_name=name)
        options = {opt for param in command.get_params(context) for opt in param.opts}
        assert "--json" in options, name
        assert "--help" in options, name
        assert command.help, name


def test_every_command_but_the_preview_and_the_importers_takes_a_place() -> None:
    for name, command in leaves(cli):
        options = {opt for param in command.params for opt in param.opts}
        wanted = {"--database-url", "--nats-url", "--home", "--namespace"}
        assert wanted <= options or name == "schedule preview" or name.startswith("import "), name


def choices(command: click.Command, name: str) -> tuple[str, ...]:
    (option,) = (param for param in command.params if param.name == name)
    assert isinstance(option.type, click.Choice)
    return tuple(str(choice) for choice in option.type.choices)


def test_registration_offers_everything_that_a_job_can_be() -> None:
    register = dict(leaves(cli))["job register"]
    names = {param.name for param in register.params}
    fields = set(JobDefinition.model_fields) - {"schedule", "retry"}
    assert fields <= names
    assert choices(register, "overlap") == get_args(Overlap)
    assert choices(register, "catch_up") == get_args(CatchUp)
    assert choices(register, "gap") == get_args(Gap)
    assert choices(register, "fold") == get_args(Fold)
    assert choices(dict(leaves(cli))["occurrence list"], "state") == get_args(Phase)
    assert choices(dict(leaves(cli))["job list"], "status") == get_args(JobStatus)


def test_an_update_says_no_default_since_what_is_not_named_stays() -> None:
    commands = dict(leaves(cli))
    for name, says in (("job register", True), ("job update", False)):
        options = [param for param in commands[name].params if isinstance(param, click.Option)]
        assert any("[default: " in (option.help or "") for option in options) is says
        assert all(option.help for option in options if not option.hidden)


def test_help_imports_no_driver() -> None:
    code = (
        "import sys; from horolog.interface.cli.main import run; run(['--help']);"
        "print([m for m in ('psycopg', 'nats', 'pydantic', 'rich') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
