"""What the doctor looks at in Azure."""
