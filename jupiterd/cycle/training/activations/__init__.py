"""What layers keep until the backward pass: of all weights, or of adapters beside frozen ones."""
