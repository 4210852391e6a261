"""What a person writes: the declaration in stacks/Pulumi.<env>.yaml, typed and checked."""
