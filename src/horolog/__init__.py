"""Horolog: an event-sourced job scheduler."""
