"""Upgrades in every order, which take minutes: make test-upgrade."""
