"""How training fits its data: steps from tokens, where it ends, which size suits."""
