"""The durable, past-tense records of a ledger, and their form on the wire."""
