"""What is true of every node: names and ranges of them, states and how long each may last, GPUs."""
