"""Taking text out of what was fetched; all of it runs in the process of `extraction_process`."""
