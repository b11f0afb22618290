"""What tasks of lm-evaluation-harness ask a model, answered here for other machines."""
