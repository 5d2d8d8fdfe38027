"""Methods that learn from one drawn point at a time, and perceptrons."""
