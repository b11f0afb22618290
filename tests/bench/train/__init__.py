"""How fast training is, against what people would use instead."""
