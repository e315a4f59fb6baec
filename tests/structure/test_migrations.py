"""Two engineers who add a migration on the same day must not both call it the fifth."""

from horolog.infrastructure.postgres.migrate import migrations


def test_migrations_are_numbered_from_one_without_gaps_or_doubles() -> None:
    numbers = [migration.number for migration in migrations()]
    assert numbers == list(range(1, len(numbers) + 1))


def test_a_migration_says_which_code_it_admits_or_that_it_admits_none_but_its_own() -> None:
    """A release before this one stops where nobody has thought of it (docs/upgrading.md)."""
    silent = [m.name for m in migrations() if m.number > 8 and "-- horolog: admits" not in m.text]
    assert silent == [], "say `-- horolog: admits N`, N being its own number where older code fails"
