"""The verbs of jupiterctl, carried out at the leader."""
