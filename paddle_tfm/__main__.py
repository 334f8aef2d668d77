"""`python -m paddle_tfm`: the same as `paddle-tfm`."""

from paddle_tfm.cli import main

if __name__ == "__main__":
    main()
