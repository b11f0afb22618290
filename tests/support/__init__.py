"""What tests of several kinds share: processes and servers that stand beside what is tested."""
