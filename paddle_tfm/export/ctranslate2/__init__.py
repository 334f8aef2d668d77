"""What is of CTranslate2: the rules by which it holds components, its variables and files, and decoding by it."""
