"""Drawings as text, without a screen."""
