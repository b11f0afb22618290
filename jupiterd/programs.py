"""Where jupiterd and jupiterctl begin. Doesn't know what they do."""

from jupiterd.startup import ends_at_ctrl_c, open_standard_streams


def jupiterd() -> None:
    """Run the daemon's command line."""
    open_standard_streams()
    with ends_at_ctrl_c():
        from jupiterd.daemon.app.main import main
    main()


def jupiterctl() -> None:
    """Run the command line that asks the daemon."""
    open_standard_streams()
    with ends_at_ctrl_c():
        from jupiterd.ctl.main import main
    main()
