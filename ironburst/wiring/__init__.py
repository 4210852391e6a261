"""What a document or a stack file names, connected: `clouds`, a table with a row a cloud, and `schedulers`."""
