"""The guides to the page and to the API beside it, each on a port of its own."""

import json

from tests.acceptance.conftest import eventually
from tests.acceptance.guides.desk import Desk
from tests.acceptance.guides.following import by_shell
from tests.acceptance.guides.granted import free_port
from tests.acceptance.guides.guide import Guide, Says
from tests.acceptance.shown import shown

REGISTER_BY_HTTP = next(
    one.line for one in shown("docs/http-api.md") if '"invoices.bill"' in one.line
)


def of_the_page(desk: Desk) -> None:
    port = free_port()
    desk.terminal.environment["HOROLOG_WEB_PORT"] = str(port)
    desk.words["localhost:8480"] = f"127.0.0.1:{port}"


def of_the_api(desk: Desk) -> None:
    """Beside a scanner, without which no occurrence begins."""
    of_the_page(desk)
    if desk.processes:
        desk.terminal.start("scanner")


def accounts(desk: Desk) -> None:
    """The guide's own, with a whole secret and a whole digest."""
    (listed,) = [one for one in shown("docs/web.md") if one.line == "cat accounts"]
    text = listed.printed.replace("Zx0…", "Zx0" + "s" * 29).replace("9f86d0…", "9f86d0" + "0" * 58)
    desk.write("accounts", text + "\n")
    desk.terminal.stop_all()  # the open page has the port
    of_the_page(desk)


def after_the_page(desk: Desk) -> None:
    if desk.processes:
        port = desk.terminal.environment["HOROLOG_WEB_PORT"]
        asked = f"curl -s http://127.0.0.1:{port}/api/v1/jobs -H 'Host: jobs.example.org'"
        refused = eventually(lambda: by_shell(desk, asked, "", Says()))
        assert "urn:horolog:problem:unknown-caller" in refused.out, refused
        secret = "Zx0" + "s" * 29
        let_in = by_shell(desk, f"{asked} -H 'Authorization: Bearer {secret}'", "", Says())
        assert let_in is not None
        assert json.loads(let_in.out)["items"] == []


WEB = Guide(
    "web", of_the_page,
    before={"openssl rand -base64 24": accounts}, then=after_the_page,
)  # fmt: skip

HTTP_API = Guide(
    "http-api", of_the_api,
    says={
        REGISTER_BY_HTTP: Says(('"key":"bill-ann"',)),
        "curl -s localhost:8480/api/v1/jobs/bill-ann/upcoming?n=3": Says(("T02:00:00-0",)),
        'curl -s "localhost:8480/api/v1/log?after=0&topic=occurrence&wait=20"': Says(
            ("occurrence.claimed",)
        ),
    },
)  # fmt: skip
