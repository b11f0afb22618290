"""Instruction data: conversations read from files, beside plain text."""
