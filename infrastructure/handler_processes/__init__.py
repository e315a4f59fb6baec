"""Processes in which handlers run: those that the worker keeps, and what runs in each."""
