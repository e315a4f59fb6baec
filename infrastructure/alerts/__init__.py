"""The ways out of alerts: a command, a webhook, a subject of NATS."""
