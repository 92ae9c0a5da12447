"""`python -m stagewise`: the same words as `stagewise`."""

from stagewise.cli.entry import main

if __name__ == "__main__":
    main()
