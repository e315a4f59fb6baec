"""How long a client and the command line take to start: what everybody pays, every time."""

import subprocess
import sys
from statistics import median
from time import perf_counter

_IMPORT = "from time import perf_counter as t; a = t(); import horolog; print(t() - a)"


def import_ms(times: int = 5) -> float:
    """Milliseconds that ``import horolog`` takes in a new interpreter; the median."""
    command = [sys.executable, "-c", _IMPORT]
    return median(float(subprocess.check_output(command)) for _ in range(times)) * 1e3


def help_ms(times: int = 5) -> float:
    """Milliseconds of a whole ``horolog --help``, the interpreter's own start among them."""
    command = [sys.executable, "-m", "horolog.interface.cli.main", "--help"]
    spent: list[float] = []
    for _ in range(times):
        began = perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        spent.append(perf_counter() - began)
    return median(spent) * 1e3
