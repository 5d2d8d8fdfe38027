"""The base class of the solvers, the problem that they get, and the monitor that watches them."""
