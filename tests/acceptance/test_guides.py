"""The commands of the how-to guides, all but their processes: those are started by `make walk`."""

import re

import pytest
from tests.acceptance.conftest import Horolog
from tests.acceptance.guides.desk import Desk
from tests.acceptance.guides.every import GUIDES
from tests.acceptance.guides.following import follow
from tests.acceptance.guides.guide import Guide
from tests.acceptance.guides.left_out import NOT_RUN, reason
from tests.acceptance.shown import ROOT, shown


@pytest.mark.parametrize(
    "guide", [guide for guide in GUIDES if guide.whole], ids=lambda guide: guide.page
)
def test_a_guides_commands_answer_as_it_says(guide: Guide, horolog: Horolog) -> None:
    follow(guide, Desk(horolog, processes=False))


def test_every_guide_that_shows_commands_is_followed() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text()
    part = navigation.partition("- How to:")[2].partition("- Explanation:")[0]
    pages = [page for page in re.findall(r": (\S+)\.md", part) if shown(f"docs/{page}.md")]
    assert pages == [guide.page for guide in GUIDES]


def test_nothing_is_left_out_that_is_no_longer_shown() -> None:
    left_out = {reason(one) for guide in GUIDES for one in shown(f"docs/{guide.page}.md")}
    assert left_out >= set(NOT_RUN.values())
