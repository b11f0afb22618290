"""One island's part in the outer loop: what it sends every H steps, and what it takes in.

An island trains by itself for H steps. Then its weights' pseudo-gradient (start minus end) goes out
in int8, everybody's pseudo-gradients are merged, and all take the same outer step. Everything here
is elementwise numpy in fp32, so that islands of MLX and of torch, on x86 and on ARM, have the same
weights to the bit.
"""
