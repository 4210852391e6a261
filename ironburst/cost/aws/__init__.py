"""What the lines of an AWS bill are for."""
