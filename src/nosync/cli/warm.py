"""`nosync warm`: Spark starts faster afterwards."""

import click

from nosync.cli.output import size


@click.command(short_help="Make Spark start in half the time, once for each installation.")
def warm() -> None:
    """Keep the classes that Spark loads in an archive, below ~/.cache/nosync: sessions that nosync starts take it from there, and are there
    in about half the time. Takes half a minute, once for each Java and each PySpark. It can be deleted at any time.

    \b
    nosync warm
    """
    from nosync.spark.class_archive import kept_in, make  # other commands need no PySpark

    made = make(kept_in())
    click.echo(f"{made}: {size(made.stat().st_size)}; sessions that nosync starts take it from there")
