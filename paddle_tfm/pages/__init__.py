"""What our HTML pages are made of: each is one file that needs no other, no network and no script, light or dark, on
paper, and at any width."""
