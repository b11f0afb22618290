"""Where jupiter-tui begins. Doesn't know what it does."""

from jupiterd.loading import ends_at_ctrl_c


def jupiter_tui() -> None:
    """Run the dashboard's command line."""
    with ends_at_ctrl_c():
        from jupiter_tui.main import main
    main()
