"""crontab(5): a user's table, or the system's with a user in each line.

    CRON_TZ=Europe/Berlin
    MAILTO=ops
    30 2 * * 1-5   /usr/bin/backup --full % first line of stdin

The command becomes the payload of a handler that runs commands (examples/crontab_worker.py). What a
crontab means is kept: a missed time is skipped, nothing is tried again, runs may overlap.
"""

import re
from typing import Any

from horolog.interface.importing.declared import Imported, key_of

HANDLER = "crontab.run"

_NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_ASSIGNMENT = re.compile(r"""\s*(?P<name>"[^"]*"|'[^']*'|[A-Za-z_]\w*)\s*=\s*(?P<value>.*?)\s*$""")
_ZONES = ("CRON_TZ", "TZ")


def read_crontab(
    text: str, *, zone: str | None, system: bool = False, handler: str = HANDLER
) -> Imported:
    """The jobs of a crontab. ``zone`` is the machine's, for lines without a CRON_TZ before them;
    ``system``: the sixth field of a line is a user, as in /etc/crontab and /etc/cron.d."""
    found, environment = Imported(), dict[str, str]()
    here, seen = zone, dict[str, int]()
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        entry = f"line {number}"
        assignment = None if stripped[0] in "@*0123456789" else _ASSIGNMENT.match(line)
        if assignment is not None:
            name, value = (_unquoted(assignment[group]) for group in ("name", "value"))
            if name in _ZONES:
                here = value or zone
                if name == "TZ":
                    said = "TZ is taken for the zone of the schedule too, as cronie does not do"
                    found.differs(entry, said)
            else:
                environment[name] = value
                if name == "MAILTO" and value:
                    said = f"output is not mailed to {value}: it is the result of the run"
                    found.differs(entry, said)
            continue
        job = _job(found, entry, stripped, here, system=system)
        if job is None:
            continue
        payload = job["payload"] | ({"environment": dict(environment)} if environment else {})
        key = key_of(
            "crontab", payload["command"], payload.get("stdin", ""), payload.get("user", "")
        )
        seen[key] = seen.get(key, 0) + 1
        if seen[key] > 1:
            key = f"{key}-{seen[key]}"
        found.declare(
            entry,
            {
                "key": key,
                "name": handler,
                "schedule": job["schedule"],
                "payload": payload,
                "catch_up": "skip",
                "retry": {"max_attempts": 1},
                "labels": {"from": "crontab"},
            },
        )
    return found


def _job(
    found: Imported, entry: str, line: str, zone: str | None, *, system: bool
) -> dict[str, Any] | None:
    expression, rest = _split(line)
    if expression == "@reboot":
        found.refuse(
            entry,
            "@reboot: Horolog knows no boot of a machine; start it by the machine's own service"
            " manager, or trigger a job there: horolog job trigger",
        )
        return None
    if expression is None or not rest:
        found.refuse(entry, f"{line!r} is no line of a crontab: five fields and a command")
        return None
    if "~" in expression:
        said = f"{expression!r}: a random minute (~) is written as a jitter here"
        found.refuse(entry, f"{said}: schedule = {{cron = …, jitter = 60}}")
        return None
    user = ""
    if system:
        user, _, rest = rest.partition(" ")
        rest = rest.strip()
        if not rest:
            found.refuse(entry, f"{line!r} has no command after the user")
            return None
        found.differs(
            entry, f"it ran as {user}: the worker that has the handler has to be that user"
        )
    if rest.startswith("-") and system:
        found.refuse(entry, "a command that begins with `-` says nothing here: write it without")
        return None
    if zone is None:
        found.refuse(entry, "in which zone? no CRON_TZ stands before it: give --zone")
        return None
    command, stdin = _percent(rest)
    payload = {"command": command, "stdin": stdin, "user": user}
    return {
        "schedule": {"cron": expression, "zone": zone},
        "payload": {name: value for name, value in payload.items() if value},
    }


def _split(line: str) -> tuple[str | None, str]:
    """The expression (or a nickname, where it means none) and what follows."""
    if line.startswith("@"):
        nickname, *rest = line.split(None, 1)
        said = nickname.lower()
        return _NICKNAMES.get(said, said if said == "@reboot" else None), "".join(rest)
    fields = line.split(None, 5)
    if len(fields) < 6:
        return None, ""
    return " ".join(fields[:5]), fields[5]


def _percent(command: str) -> tuple[str, str]:
    """What is run, and its standard input: the first bare ``%`` ends the command, the others are
    new lines, and one behind a backslash is itself."""
    parts = [part.replace("\\%", "%") for part in re.split(r"(?<!\\)%", command)]
    stdin = "\n".join(parts[1:])
    return parts[0].rstrip(), f"{stdin}\n" if len(parts) > 1 else ""


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text
