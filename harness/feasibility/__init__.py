"""Studies of feasibility methods: cells of generated problems, and classes of images."""
