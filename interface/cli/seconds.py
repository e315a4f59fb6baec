"""A duration as an option: a number of seconds. Who writes a unit is told the number."""

import re
from typing import Final

import click

_UNITS: Final = {"ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}
_WITH_A_UNIT: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)", re.IGNORECASE)


class Seconds(click.types.FloatParamType):
    """Seconds, as a float."""

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        try:
            return float(str(value))
        except ValueError:
            found = _WITH_A_UNIT.fullmatch(str(value).strip())
            unit = None if found is None else _UNITS.get(found[2].lower())
            hint = "" if found is None or unit is None else f": write {float(found[1]) * unit:g}"
            self.fail(f"{value!r} is no number of seconds{hint}", param, ctx)


SECONDS: Final = Seconds()
