"""A second set of the read models' tables beside those in use: filled, compared, exchanged."""
