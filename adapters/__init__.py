"""Chat platforms: one module each, all behind `adapters.base`. Wire in, plain values out."""
