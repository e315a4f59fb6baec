"""How it is kept: the adapters of the application's ports, for Postgres, NATS and the machine."""
