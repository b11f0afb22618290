"""What tests with daemons rely on: fork server and tokens for cores."""
