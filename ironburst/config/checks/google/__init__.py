"""What is wrong with a declaration of Google Cloud."""
