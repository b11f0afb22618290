"""`jupiterctl data`: prepares, lists, audits, exports and purges text."""
