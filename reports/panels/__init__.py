"""The figures of tasks and studies, one module for each family of them."""
