"""A stand-in of Azure's API (ARM), strict by construction: what the SDK's own models and requests lack is refused."""
