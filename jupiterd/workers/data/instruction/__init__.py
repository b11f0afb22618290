"""Instruction data: conversations read from files, and their tokens by a chat template."""
