"""A schedule in a few words, as the command line shows it."""

from horolog.application.answers.schedule_words import schedule_words as schedule_text

__all__ = ["schedule_text"]
