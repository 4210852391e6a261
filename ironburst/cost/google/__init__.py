"""What the lines of a Google Cloud bill are for."""
