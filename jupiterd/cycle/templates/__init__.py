"""Ways of making a new text of a real document: what a generator is asked, and what it may say."""
