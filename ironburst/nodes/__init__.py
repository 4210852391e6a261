"""What is true of every node: names, states and how long each may last, GPUs."""
