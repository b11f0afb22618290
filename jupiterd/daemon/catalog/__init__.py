"""What the ledger says of models, data sets, runs and rounds."""
