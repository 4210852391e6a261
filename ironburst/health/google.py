"""Google Cloud's fabrics."""

# link_layer of RDMA's ports; of the others, which have none, the driver of the network cards
CARD = "gve"
LAYERS = {"roce": "Ethernet", "gpudirect-tcpx": CARD, "gpudirect-tcpxo": CARD}
