"""AWS: the cloud's calls and errors, images, and what the doctor asks the account."""
