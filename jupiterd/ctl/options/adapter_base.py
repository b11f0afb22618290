"""The option that names what an adapter's folder stands beside."""

import click

base_option = click.option(
    "--base",
    metavar="FOLDER|MODEL",
    help="What an adapter's folder stands beside, where it doesn't name it or that isn't here.",
)
