"""One daemon as its owner, its service manager and its monitors see it."""
