"""The controller: observe, decide, re-check, apply, record. The only one that launches or ends a rented node."""
