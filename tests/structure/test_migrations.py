"""Two engineers who add a migration on the same day must not both call it the fifth."""

from horolog.infrastructure.postgres.migrate import migrations


def test_migrations_are_numbered_from_one_without_gaps_or_doubles() -> None:
    numbers = [migration.number for migration in migrations()]
    assert numbers == list(range(1, len(numbers) + 1))
