"""What is asked of a served model, and who may answer it: decisions alone."""
