"""Writing new samples with a language model, each grounded in a real one."""
