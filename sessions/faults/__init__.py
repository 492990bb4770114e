"""What can be wrong with a store, kind by kind: each module finds it, and mends it in short transactions."""
