"""How bash, zsh and fish ask for completions, where click's own way is not enough.

A key of a job may hold what a shell takes for something else. bash parts words at colons, and only
it knows where; what it puts in place of a word stands there as it is, so a blank or a quote in it
has to be escaped. fish is given what is between two commas, which a key may hold, too. And a zsh
may not have begun to complete anything yet.
"""

import os
import re
import shlex
from typing import Final

from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    split_arg_string,
)

_BASH: Final = """\
%(complete_func)s() {
    local IFS=$'\\n'
    local response completion type value

    response=$(env COMP_WORDS="${COMP_LINE:0:COMP_POINT}" COMP_WORDBREAKS="$COMP_WORDBREAKS" \\
        %(complete_var)s=bash_complete "$1")

    for completion in $response; do
        IFS=',' read -r type value <<< "$completion"

        if [[ $type == 'dir' ]]; then
            COMPREPLY=()
            compopt -o dirnames
        elif [[ $type == 'file' ]]; then
            COMPREPLY=()
            compopt -o default
        elif [[ $type == 'plain' ]]; then
            COMPREPLY+=("$value")
        fi
    done

    return 0
}

%(complete_func)s_setup() {
    complete -o nosort -F %(complete_func)s %(prog_name)s
}

%(complete_func)s_setup;
"""
_SPECIAL: Final = re.compile(r"[^\w%+,./:=@^-]")
_REGISTERS: Final = "    compdef %(complete_func)s %(prog_name)s\n"
_BEGINS: Final = "    (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }\n"
_AT_COMMAS: Final = 'string split ","'


class Bash(BashComplete):
    """The words are those of the line up to the cursor; of the last one, what bash will replace."""

    source_template = _BASH
    _quoted = False
    _kept = 0
    """How much of the last word bash leaves as it is."""

    def get_completion_args(self) -> tuple[list[str], str]:
        line = os.environ["COMP_WORDS"]
        words = split_arg_string(line)
        # A blank behind a backslash, or within quotes, is a part of its word.
        ended = line[-1:].isspace() and split_arg_string(line + "x")[-1:] == ["x"]
        incomplete = "" if ended or len(words) < 2 else words.pop()
        self._quoted = _ends_within_quotes(line)
        if not self._quoted:
            breaks = [mark for mark in ":=@" if mark in os.environ.get("COMP_WORDBREAKS", "")]
            self._kept = 1 + max(map(incomplete.rfind, breaks), default=-1)
        return words[1:], incomplete

    def format_completion(self, item: CompletionItem[str]) -> str:
        left = item.value[self._kept :]
        if item.type == "plain" and not self._quoted:
            left = _SPECIAL.sub(r"\\\g<0>", left)
        return f"{item.type},{left}"


class Zsh(ZshComplete):
    """Begins to complete, where nothing did."""

    source_template = ZshComplete.source_template.replace(_REGISTERS, _BEGINS + _REGISTERS)


class Fish(FishComplete):
    """Takes no comma of a key for an end of it."""

    source_template = FishComplete.source_template.replace(_AT_COMMAS, 'string split -m 1 ","')


SHELLS: Final[dict[str, type[ShellComplete]]] = {"bash": Bash, "zsh": Zsh, "fish": Fish}


def know_them() -> None:
    """From here on click asks in these ways."""
    for name, shell in SHELLS.items():
        add_completion_class(shell, name)


def _ends_within_quotes(line: str) -> bool:
    try:
        shlex.split(line)
    except ValueError as error:
        return "quotation" in str(error)
    return False
