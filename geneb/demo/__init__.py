"""Two small real tasks, shipped with the program."""
