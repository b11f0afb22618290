"""The file beside a round's shards that says what they are made of: its name, and its size.

Packing writes it, `data list` reads it. Doesn't know what stands in it.
"""

CONTENTS_FILE = "contents.json"
MAX_CONTENTS_BYTES = 1 << 20
