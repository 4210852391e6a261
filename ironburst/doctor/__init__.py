"""What `ironburst doctor` looks at: is what a declared cluster needs there, and usable? Pure: what was answered in,
findings out. Each subject has a module with `check(site)`; a cloud's lie in its
room, where `account` is what is asked; the adapters' room of the same name asks.
"""
