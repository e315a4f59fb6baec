"""Read models of Horolog, for the admin page: views of its tables, never written by Django."""

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
    id = models.UUIDField(primary_key=True)
    key = models.TextField(null=True)
    name = models.TextField("handler")
    status = models.TextField()
    queue = models.TextField()
    owner = models.TextField(null=True)
    version = models.IntegerField()
    registered_at = models.DateTimeField()
    changed_at = models.DateTimeField()

    class Meta:
        managed = False
        db_table = f'"{_SCHEMA}"."jobs"'
        verbose_name = "job"

    def __str__(self) -> str:
        return str(self.key or self.id)


class DeadLetter(ReadOnly):
    id = models.UUIDField(primary_key=True)
    job_id = models.UUIDField()
    name = models.TextField("handler")
    owner = models.TextField(null=True)
    cause = models.TextField()
    kind = models.TextField(null=True)
    error = models.TextField(null=True)
    attempt = models.IntegerField()
    fire_time = models.DateTimeField()
    since = models.DateTimeField()

    class Meta:
        managed = False
        db_table = f'"{_SCHEMA}"."dead_letters"'
        verbose_name = "dead letter"

    def __str__(self) -> str:
        return f"{self.name} {self.fire_time.isoformat()}"
