"""What holds for one kind of component by itself: a file a kind."""
