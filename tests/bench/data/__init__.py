"""How fast data is filtered, packed, read and explained."""
