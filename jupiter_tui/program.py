"""Where jupiter-tui begins. Doesn't know what it does."""

from jupiterd.startup import ends_at_ctrl_c, open_standard_streams


def jupiter_tui() -> None:
    """Run the dashboard's command line."""
    open_standard_streams()
    with ends_at_ctrl_c():
        from jupiter_tui.main import main
    main()
