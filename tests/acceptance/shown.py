"""What a document shows somebody to type, in its order, and what it says comes back.

Fenced `console` blocks (what follows a command without a `$ ` is what it prints), indented blocks,
and `horolog …` in the prose, each of the latter once.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

_PIECE = re.compile(
    r"^```(?P<language>\w+)\n(?P<fenced>.*?)^```"
    r"|(?<=\n\n)(?P<indented>(?:    \S[^\n]*\n)+)"
    r"|`(?P<prose>horolog [^`]+)`",
    re.MULTILINE | re.DOTALL,
)
_COMMENT = re.compile(r"\s+#\s.*$", re.MULTILINE)


@dataclass(frozen=True)
class Shown:
    """One command; ``printed`` is what the document says that it prints."""

    line: str
    printed: str = ""
    mentioned: bool = False  # in the prose


def blocks(document: str, heading: str = "") -> Iterator[tuple[str, str]]:
    """The programs and commands of a document in their order, each with its language; only those
    below ``heading``, where one is named."""
    text = (ROOT / document).read_text()
    part = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0] if heading else text
    assert part, f"{document} has no part {heading!r}"
    return iter(re.findall(r"^```(\w+)\n(.*?)^```", part, re.MULTILINE | re.DOTALL))


def commands(block: str) -> list[list[str]]:
    """The `horolog` commands of a console block, without their `$ horolog`."""
    lines = [line.removeprefix("$ ") for line in block.splitlines()]
    split = [shlex.split(line, comments=True) for line in lines]
    return [words[1:] for words in split if words and words[0] == "horolog"]


def shown(document: str) -> list[Shown]:
    """All of a document's commands; one that is only mentioned again is left out."""
    found: list[Shown] = []
    for piece in _PIECE.finditer((ROOT / document).read_text()):
        if piece["language"] == "console":
            found += _of_a_console(piece["fenced"])
        elif piece["indented"]:
            found += [Shown(line) for line in _lines(piece["indented"]) if _is_a_command(line)]
        elif piece["prose"]:
            line = " ".join(piece["prose"].split())
            if "…" not in line and line not in {one.line for one in found}:
                found.append(Shown(line, mentioned=True))
    return found


def _lines(block: str) -> list[str]:
    lines = [_COMMENT.sub("", f" {line}").strip() for line in block.splitlines()]
    return [line for line in lines if line]


def _is_a_command(line: str) -> bool:
    """Paths, which are shown in the same way, are none."""
    return "/" not in line.split()[0] or "=" in line.split()[0]


def _of_a_console(block: str) -> Iterator[Shown]:
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, *rest = part.splitlines()
        while rest and (command.endswith("\\") or not _is_whole(command)):
            command = f"{command.removesuffix(chr(92))}\n{rest.pop(0)}"
        yield Shown(_COMMENT.sub("", command).strip(), "\n".join(rest).strip())


def _is_whole(command: str) -> bool:
    try:
        shlex.split(command, comments=True)
    except ValueError:
        return False
    return True
