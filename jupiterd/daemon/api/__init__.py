"""What is served: the gRPC services for peers, the local sockets for front ends."""
