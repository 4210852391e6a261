"""AWS's fabric."""

LAYERS = {"efa": "Unspecified"}  # link_layer of its ports
