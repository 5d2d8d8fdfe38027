"""The stochastic batch perceptron."""
