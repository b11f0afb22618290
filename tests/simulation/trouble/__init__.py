"""What goes wrong: machines, links, disks, copies, forgers."""
