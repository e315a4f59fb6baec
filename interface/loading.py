"""What a person names as ``package.module:attribute``: a worker, a projection."""

import importlib
import sys
from difflib import get_close_matches
from pathlib import Path

from horolog.domain.errors import InvalidSetting


def load(place: str, attribute: str, what: str) -> tuple[str, object]:
    """What stands at ``place``, and its full name; ``attribute`` where none is named.

    Modules of the working directory are found as well. ``what`` is what is looked for, in words.
    Raises ``InvalidSetting`` where there is no such module; what the module itself raises comes out
    as it is. An attribute that is not there is ``None``.
    """
    name, _, named = place.partition(":")
    if not all(name.split(".")):  # empty, or relative to nothing
        raise InvalidSetting(f"{place!r} is no package.module:attribute")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not (name == error.name or name.startswith(f"{error.name}.")):
            raise
        raise InvalidSetting(
            f"there is no module {name!r} to take the {what} from (looked in {here} too):"
            " name it as package.module:attribute"
        ) from error
    found: object = module
    for part in (named or attribute).split("."):
        found = getattr(found, part, None)
    return f"{name}:{named or attribute}", found


def wrong_kind(name: str, found: object, wanted: str) -> InvalidSetting:
    """The refusal of something else than what was wanted."""
    if found is not None:
        return InvalidSetting(f"{name} is no {wanted} (it is a {type(found).__name__})")
    module, _, attribute = name.partition(":")
    there = vars(sys.modules[module]) if module in sys.modules else {}
    near = get_close_matches(attribute, [one for one in there if not one.startswith("_")], 1)
    hint = f": did you mean {module}:{near[0]}?" if near else ""
    return InvalidSetting(f"{name} is no {wanted} (there is no such name){hint}")
