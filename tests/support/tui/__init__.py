"""The dashboard without a daemon: documents, pictures and terminals."""
