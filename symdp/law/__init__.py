"""Numbers: quadrature nodes of any density, loss laws, characteristic functions on a line."""
