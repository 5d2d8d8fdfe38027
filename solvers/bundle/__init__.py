"""Bundle methods: regularised risks minimised by planes below them."""
