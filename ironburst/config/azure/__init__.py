"""What a stack file declares of Azure: models, the network that is made for it, rights."""
