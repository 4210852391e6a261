"""Turn declared hosts into nodes: validate, leave busy nodes alone, run the roles, keep a receipt."""
