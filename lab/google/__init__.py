"""A stand-in of Compute Engine's API, strict by construction: what the API's own description lacks is refused."""
