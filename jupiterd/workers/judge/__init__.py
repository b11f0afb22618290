"""Having a judge model compare what two students write."""
