"""Checks of what a stack file declares of AWS."""
