"""The page in a real browser: chromium, driven by playwright; and the pictures of the documents.

`make browser-test` runs it, `make screenshots` also writes docs/screenshots. Without a browser the
test is skipped; the suite's own tests of the page need none.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

PLACES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SCREENSHOTS = Path(__file__).parents[3] / "docs" / "screenshots"


def executable() -> str:
    """The installed browser; skips the test where there is none, or nothing to drive it."""
    pytest.importorskip("playwright", reason="playwright drives the browser: make browser-test")
    found = next((path for name in PLACES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"no browser is installed (none of {', '.join(PLACES)} is on the PATH)")
    return found


@contextmanager
def browser() -> Generator[Any]:
    """A browser without a window."""
    path = executable()
    sync_playwright: Any = import_module("playwright.sync_api").sync_playwright
    # Chromium refuses its sandbox to root, as which containers run.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=path, args=arguments)
        try:
            yield running
        finally:
            running.close()
