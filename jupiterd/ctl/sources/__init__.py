"""Where models, text and domains come from, as a command line names them."""
