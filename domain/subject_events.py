"""What can happen to a subject, the person or customer whose data jobs carry: it is forgotten.

Its stream (:func:`horolog.domain.ids.subject_stream`) has this one event at most. What a key is
made for is no event: until there is data there is nothing to say.
"""

from horolog.domain.event import Event


class SubjectEvent(Event):
    """Any of the events below."""


class Forgotten(SubjectEvent, topic="subject.forgotten.1"):
    """The key of the subject was destroyed with the append of this event, and comes back never.

    Its jobs are cancelled after that, each with events of its own under the same correlation.
    """

    subject: str
