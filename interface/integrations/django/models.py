"""Read models of Horolog, for the admin page: views of its tables, never written by Django."""

# A field's type parameters are found out by a plugin that this type checker does not have.
# pyright: reportUnknownVariableType=false

from typing import Any

from django.db import models

from horolog.interface.integrations.django.configuration import configuration

_SCHEMA = configuration().settings.namespace


class ReadOnly(models.Model):
    class Meta:
        abstract = True

    def save(self, *args: Any, **kwargs: Any) -> None:
        raise TypeError("Horolog's tables follow its log: use horolog.django.scheduler()")

    def delete(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("Horolog's tables follow its log: use horolog.django.scheduler()")


class Job(ReadOnly):
    id: Any = models.UUIDField(primary_key=True)
    key: Any = models.TextField(null=True)
    name: Any = models.TextField("handler")
    status: Any = models.TextField()
    queue: Any = models.TextField()
    owner: Any = models.TextField(null=True)
    version: Any = models.IntegerField()
    registered_at: Any = models.DateTimeField()
    changed_at: Any = models.DateTimeField()

    class Meta(ReadOnly.Meta):
        abstract = False
        managed = False
        db_table = f'"{_SCHEMA}"."jobs"'
        verbose_name = "job"

    def __str__(self) -> str:
        return str(self.key or self.id)


class DeadLetter(ReadOnly):
    id: Any = models.UUIDField(primary_key=True)
    job_id: Any = models.UUIDField()
    name: Any = models.TextField("handler")
    owner: Any = models.TextField(null=True)
    cause: Any = models.TextField()
    kind: Any = models.TextField(null=True)
    error: Any = models.TextField(null=True)
    attempt: Any = models.IntegerField()
    fire_time: Any = models.DateTimeField()
    since: Any = models.DateTimeField()

    class Meta(ReadOnly.Meta):
        abstract = False
        managed = False
        db_table = f'"{_SCHEMA}"."dead_letters"'
        verbose_name = "dead letter"

    def __str__(self) -> str:
        return f"{self.name} {self.fire_time.isoformat()}"
