"""A hall: what stands where, what it draws, and how it is cabled. Pure: the standard library only."""
