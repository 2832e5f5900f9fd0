"""The parent process: embedded Valkey, worker processes, listening sockets, operations port."""
