"""`python -m rlbench`."""

from rlbench.cli.app import main

if __name__ == "__main__":
    main()
