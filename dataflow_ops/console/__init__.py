"""What people look at and press: read models of runs and products, and the actions beside them."""
