"""What a stack file declares of AWS, and what is worked out of it."""
