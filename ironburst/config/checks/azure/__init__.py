"""What is wrong with a declaration of Azure."""
