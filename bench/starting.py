"""How long a client and the command line take to start: what everybody pays, every time."""

import subprocess
import sys
from os import environ
from statistics import median
from time import perf_counter

LIBRARIES = "import croniter, psycopg, psycopg_pool, pydantic"
"""What a client cannot do without: the limit of its import."""


def import_ms(statement: str = "import horolog", times: int = 5) -> float:
    """Milliseconds that a statement takes in a new interpreter; the median."""
    timed = f"from time import perf_counter as t; a = t(); {statement}; print(t() - a)"
    command = [sys.executable, "-c", timed]
    subprocess.check_call(command, env=_usual(), stdout=subprocess.DEVNULL)
    spent = [float(subprocess.check_output(command, env=_usual())) for _ in range(times)]
    return median(spent) * 1e3


def help_ms(times: int = 5) -> float:
    """Milliseconds of a whole ``horolog --help``, the interpreter's own start among them."""
    command = [sys.executable, "-m", "horolog.interface.cli.main", "--help"]
    spent: list[float] = []
    for _ in range(times):
        began = perf_counter()
        subprocess.run(command, check=True, env=_usual(), stdout=subprocess.DEVNULL)
        spent.append(perf_counter() - began)
    return median(spent) * 1e3


def _usual() -> dict[str, str]:
    """The environment, with compiled modules kept as they are wherever nobody forbids it."""
    return {name: value for name, value in environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
