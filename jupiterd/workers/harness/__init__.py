"""Scores models in the tasks of lm-evaluation-harness, which is the package `lm_eval`."""
