"""`stagewise` before anything is imported: also then Ctrl+C ends it quietly."""


def main() -> None:
    """Run the words that were typed."""
    try:
        from stagewise.cli.main import app

        app(prog_name="stagewise")
    except KeyboardInterrupt:
        raise SystemExit(130) from None
