"""The entry point `stagewise`; Ctrl+C during imports prints no traceback."""


def main() -> None:
    """Run the command line."""
    try:
        from stagewise.cli.main import app

        app(prog_name="stagewise")
    except KeyboardInterrupt:
        raise SystemExit(130) from None
