"""What the lines of an Azure bill are for."""
