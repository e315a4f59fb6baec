"""For FastAPI and Starlette: a scheduler that lives as long as the application."""

from horolog.interface.integrations.fastapi import CurrentScheduler, current_scheduler, scheduling

__all__ = ["CurrentScheduler", "current_scheduler", "scheduling"]
