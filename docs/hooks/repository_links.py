"""Links out of the documents into the repository: names on the site, and ways in a clone."""

import re
from typing import Any

_OUTSIDE = re.compile(r"\[([^\]]+)\]\((?:\.\./)+([^)#]+)\)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Says the path instead of linking to what the site does not hold."""

    def named(link: re.Match[str]) -> str:
        text, path = link.groups()
        return f"`{path}`" if text.strip("`") in path else f"{text} (`{path}`)"

    return _OUTSIDE.sub(named, markdown)
