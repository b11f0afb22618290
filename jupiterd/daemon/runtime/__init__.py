"""What every part of the daemon runs on: settings, state folder, clock, logs and wire values."""
