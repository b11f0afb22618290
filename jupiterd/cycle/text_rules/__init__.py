"""What kind of document a text is, the form it is brought into, and the rules that judge it."""
