"""An image is baked: which one, how, and the first contact with the host that it is made on."""
