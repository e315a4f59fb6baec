"""`horolog completion SHELL`: the script that has a shell complete commands, options and keys."""

from typing import Final

import click

from horolog.interface.cli.place import Place, at_a_place
from horolog.interface.cli.rendering import Output

VARIABLE: Final = "_HOROLOG_COMPLETE"
"""Where the script tells the program what is wanted; click reads it."""


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@at_a_place
def completion(place: Place, output: Output, shell: str) -> None:
    """Print the script that completes commands, options, keys of jobs and queues.

    In ~/.bashrc: eval "$(horolog completion bash)"; in ~/.zshrc: eval "$(horolog completion zsh)";
    for fish: horolog completion fish > ~/.config/fish/completions/horolog.fish
    """
    from click.shell_completion import get_completion_class

    from horolog.interface.cli.main import cli

    del place  # nothing is asked there
    made = get_completion_class(shell)
    assert made is not None, "click knows the three"
    # The template itself: `source()` would start a bash to ask it for its version.
    values = made(cli, {}, "horolog", VARIABLE).source_vars()
    script = made.source_template % values
    if output.as_json:
        output.document({"shell": shell, "script": script})
    else:
        click.echo(script)
