"""What only a browser can tell: scripts and styles under the policy, keys, phones, the dark."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.interface.conftest import Stage
from tests.interface.web.conftest import Browser
from tests.interface.web.in_a_browser import browser

from horolog import Every, Scheduler


def test_the_page_in_a_browser(
    request: pytest.FixtureRequest, web: Browser, stage: Stage, scheduler: Scheduler
) -> None:
    if not request.config.getoption("--browser"):
        pytest.skip("it takes its time: make browser-test")
    job = scheduler.register("report", schedule=Every(60), key="report", owner="billing")
    dead = stage.dead(job.id)
    with browser() as chromium:
        for see in (
            no_view_complains,
            keys_lead_through_everything,
            a_job_is_paused_by_keyboard_alone,
            the_slider_shows_the_past,
            it_fits_a_phone,
            it_is_dark_in_the_dark,
            it_works_without_scripts,
        ):
            context = chromium.new_context()
            see(context, web.address)
            context.close()
        context = chromium.new_context()
        many_are_replayed_after_they_were_counted(context, web.address)
        context.close()
    assert scheduler.occurrence(dead.id).state == "scheduled"
    assert [change.reason for change in scheduler.changes(job.id)][1:] == ["a feast", "it is over"]


VIEWS = "/ /jobs /jobs/report /runs /figures /dead-letters /partitions /projections /past /log"


def watched(context: Any) -> tuple[Any, list[str]]:
    """A page, and what the browser complains about: scripts, the policy, what is not found."""
    page = context.new_page()
    complaints: list[str] = []

    def on_message(message: Any) -> None:
        if message.type in ("error", "warning"):
            complaints.append(message.text)

    def on_error(error: Any) -> None:
        complaints.append(str(error))

    def on_response(response: Any) -> None:
        if response.status >= 400:
            complaints.append(response.url)

    page.on("console", on_message)
    page.on("pageerror", on_error)
    page.on("response", on_response)
    return page, complaints


def no_view_complains(context: Any, address: str) -> None:
    page, complaints = watched(context)
    strangers: list[str] = []

    def on_request(request: Any) -> None:
        if not str(request.url).startswith(address):
            strangers.append(request.url)

    page.on("request", on_request)
    for path in VIEWS.split():
        page.goto(address + path)
        assert page.locator("h1").count() == 1
        assert page.evaluate("typeof htmx") == "object"
    page.goto(address + "/")
    with page.expect_response(re.compile("/parts/live")):
        pass  # htmx asks by itself
    assert complaints == []
    assert strangers == []


def keys_lead_through_everything(context: Any, address: str) -> None:
    page, _ = watched(context)
    page.goto(address + "/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"
    for key, path in (("j", "/jobs"), ("d", "/dead-letters"), ("t", "/past"), ("n", "/")):
        page.keyboard.press(key)
        page.wait_for_url(address + path)
    page.keyboard.press("j")
    page.wait_for_url(address + "/jobs")
    page.keyboard.press("/")
    page.keyboard.type("report")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/jobs/[0-9a-f-]{36}"))
    # Each link, button and form can be reached by Tab, and shows where one is.
    reachable = "a[href], button, input:not([type=hidden]), select, summary"
    hidden = page.locator(f":is({reachable})[tabindex='-1']:visible")
    assert hidden.count() == 0
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    for _ in range(12):
        page.keyboard.press("Tab")
    assert page.evaluate(outline) != "none"


def a_job_is_paused_by_keyboard_alone(context: Any, address: str) -> None:
    page, complaints = watched(context)
    page.goto(address + "/jobs/report")
    page.locator("summary", has_text="Pause").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.name") == "reason"
    page.keyboard.press("Escape")
    assert page.locator("details.command[open]").count() == 0
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")  # to the button, without a reason
    page.keyboard.press("Enter")
    assert page.locator("details.command[open]").count() == 1, "the browser asks for a reason"
    page.locator("details.command[open] input[name=reason]").fill("a feast")
    page.keyboard.press("Enter")
    page.get_by_text("paused: no fire time is claimed").wait_for()
    assert page.get_by_text("a feast").is_visible()
    page.locator("summary", has_text="Resume").click()
    page.locator("details.command[open] input[name=reason]").fill("it is over")
    page.keyboard.press("Enter")
    page.get_by_text("resumed", exact=True).first.wait_for()
    assert complaints == []


def the_slider_shows_the_past(context: Any, address: str) -> None:
    page, complaints = watched(context)
    page.goto(address + "/past")
    page.locator("#step").focus()
    before = page.locator("output").text_content()
    with page.expect_response(re.compile(r"/past\?.*step=0")):
        page.keyboard.press("Home")
    page.get_by_text("None was registered yet.").wait_for()
    assert page.locator("output").text_content() != before
    with page.expect_response(re.compile(r"/past\?.*step=1000")):
        page.keyboard.press("End")
    page.locator("#then a", has_text="report").first.wait_for()
    assert complaints == []


def it_fits_a_phone(context: Any, address: str) -> None:
    page, _ = watched(context)
    page.set_viewport_size({"width": 360, "height": 780})
    for path in VIEWS.split():
        page.goto(address + path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, path
    page.goto(address + "/jobs/report")
    page.locator("summary", has_text="Run now").click()
    assert page.locator("details.command[open] button").is_visible()


def it_is_dark_in_the_dark(context: Any, address: str) -> None:
    page, _ = watched(context)
    shades = {}
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.goto(address + "/")
        style = "getComputedStyle(document.body)"
        colours = page.evaluate(f"[{style}.backgroundColor, {style}.color]")
        shades[scheme] = [sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in colours]
    assert shades["light"][0] > 600 > shades["light"][1]
    assert shades["dark"][0] < 200 < shades["dark"][1]


def it_works_without_scripts(context: Any, address: str) -> None:
    context = context.browser.new_context(java_script_enabled=False)
    page = context.new_page()
    for path in VIEWS.split():
        page.goto(address + path)
        assert page.locator("h1").count() == 1
    page.goto(address + "/past")
    page.locator("noscript button").click()
    assert "step=" in page.url
    context.close()


def many_are_replayed_after_they_were_counted(context: Any, address: str) -> None:
    page, _ = watched(context)
    page.goto(address + "/dead-letters")
    page.locator("summary", has_text="Replay many").click()
    opened = page.locator("details.command[open]")
    opened.locator("input[name=owner]").fill("billing")
    opened.locator("input[name=reason]").fill("mended")
    opened.locator("button").click()
    page.get_by_text("would be tried again").wait_for()
    page.get_by_role("button", name="Replay 1").click()
    page.get_by_text("1 dead letters are tried again").wait_for()
