"""Requests that the API's own description allows, and some that it does not, drawn at random.

A slice of what `make api-check` does: some operations, a few requests each, all of schemathesis's
checks.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as budget
from tests.interface.web.conftest import Browser, every

_Config: Any = schemathesis.Config
LABELS = {
    f"{method} /api/v1/{path}"
    for method, path in (
        ("POST", "jobs"),
        ("POST", "jobs/{job_id}/trigger"),
        ("GET", "statistics"),
        ("POST", "dead-letters/replay"),
    )
}
CONFIG = Path(__file__).parent / "schemathesis.toml"


def test_no_answer_is_out_of_line_with_the_description(web: Browser) -> None:
    every(web, key="0")
    config = _Config.from_path(str(CONFIG))
    schema: Any = schemathesis.openapi.from_dict(
        web.get("/api/v1/openapi.json").json(), config=config
    )
    operations = [result.ok() for result in schema.get_all_operations()]
    assert len(operations) > 40
    chosen = [operation for operation in operations if operation.label in LABELS]
    assert len(chosen) == len(LABELS)
    for operation in chosen:

        @budget(
            max_examples=2,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        )
        @given(case=operation.as_strategy())
        def ask(case: Any) -> None:
            if "wait" in (case.query or {}):
                case.query["wait"] = 0
            case.call_and_validate(base_url=web.address)

        ask()
