"""Markup taken apart into blocks and marks: Markdown, reStructuredText, AsciiDoc, wikis."""
