"""What a person writes: the declaration in stacks/Pulumi.<env>.yaml, typed and checked.

- models and software_models: its sections; types and ranges: their values; schema: all of it for editors
- load: from the file to the models; checks: what is wrong between them, and by the catalogue
- software: the groups whose versions are solved; lockfile: what is locked; stack: file, lock and secrets as a whole
- prices and subnets: what follows from a declaration
"""
