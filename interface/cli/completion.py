"""`horolog completion SHELL`: the script that has a shell complete commands, options and keys."""

import click

from horolog.interface.cli.place import Place, at_a_place
from horolog.interface.cli.rendering import Output


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@at_a_place
def completion(place: Place, output: Output, shell: str) -> None:
    """Print the script that completes commands, options, keys of jobs and queues.

    In ~/.bashrc: eval "$(horolog completion bash)"; in ~/.zshrc: eval "$(horolog completion zsh)";
    in ~/.config/fish/config.fish: horolog completion fish | source
    """
    from horolog.interface.cli.main import COMPLETE, cli
    from horolog.interface.cli.shells import SHELLS

    del place  # nothing is asked there
    made = SHELLS[shell](cli, {}, "horolog", COMPLETE)
    # The template itself: `source()` would start a bash to ask it for its version.
    script = made.source_template % made.source_vars()
    if output.as_json:
        output.document({"shell": shell, "script": script})
    else:
        click.echo(script)
