"""One module an external system."""
