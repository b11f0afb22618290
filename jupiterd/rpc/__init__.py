"""Generated from proto/ by scripts/generate_rpc.py; never edited."""
