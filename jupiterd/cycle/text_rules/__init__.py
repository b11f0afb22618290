"""Which texts are worth training on, by the kind of document that they are."""
