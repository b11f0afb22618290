"""Who is here, who leads, what is agreed: pure state machines stepped with explicit time."""
