"""What the doctor looks at in Google Cloud. Pure: the questions are asked by ironburst.adapters.google.doctor."""
