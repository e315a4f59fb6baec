"""For tests of your own jobs: a scheduler in simulated time, without a server."""

from horolog.interface.testing import SimulatedScheduler

__all__ = ["SimulatedScheduler"]
