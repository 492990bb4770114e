"""What the model may ask for. Rights are checked when a tool is called."""
