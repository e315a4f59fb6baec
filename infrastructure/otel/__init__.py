"""OpenTelemetry, for whoever has it: imported only where the client or the process asks for it."""
