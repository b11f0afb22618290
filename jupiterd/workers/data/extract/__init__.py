"""Text out of bytes that strangers wrote, in processes of their own."""
