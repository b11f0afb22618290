"""Others' programs that train what Jupiter trains: by turns with ours."""
