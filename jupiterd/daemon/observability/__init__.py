"""What a daemon reports of itself and its cluster: events, alerts, metrics and telemetry."""
