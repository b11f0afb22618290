"""jupiterd as a service of the machine: started with it, and again when it fails."""
