"""What the peers' programs share: they run in the peers' environment, without Horolog."""

import argparse
import json
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True)
class Arguments:
    """``jobs`` are due at once; ``others`` stand beside them, far in the future."""

    url: str
    jobs: int
    others: int

    @classmethod
    def read(cls) -> Self:
        parser = argparse.ArgumentParser()
        parser.add_argument("--url", required=True)
        parser.add_argument("--jobs", type=int, required=True)
        parser.add_argument("--others", type=int, default=0)
        return cls(**vars(parser.parse_args()))


def told(jobs: int, seconds: float) -> None:
    """The last line of a peer's output is its figure."""
    print(json.dumps({"per_second": jobs / seconds}))
