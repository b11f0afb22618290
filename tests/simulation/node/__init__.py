"""One imitated daemon: its machine, its disk, its copy of the ledger and its shells."""
