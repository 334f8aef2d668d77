"""What is written without paddle_tfm, as it is: an ordinary layer as a component, anybody's whole model as a model
under test."""
