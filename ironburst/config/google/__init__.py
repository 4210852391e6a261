"""What a stack file declares of Google Cloud: models, the networks that its machine types need, rights."""
