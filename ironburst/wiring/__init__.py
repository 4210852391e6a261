"""Which cloud a document or a stack file names, and what the verbs need of it: `clouds` is the table, a row a cloud."""
