"""What the doctor looks at in an AWS account."""
