"""`python -m stagewise`: the same words as `stagewise`."""

from stagewise.cli.main import app

if __name__ == "__main__":
    app(prog_name="stagewise")
