"""Far sides of the wires: fakes that speak the real protocols over real sockets."""
