"""`jupiterctl train`: starts, shows, follows and stops training runs."""
