"""`nosync completion bash|zsh|fish`: what a shell needs to complete commands, options and the names of views."""

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script for SHELL.

    \b
    bash:  eval "$(nosync completion bash)"                                     in ~/.bashrc
    zsh:   eval "$(nosync completion zsh)"                                      in ~/.zshrc
    fish:  nosync completion fish > ~/.config/fish/completions/nosync.fish
    """
    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(context.find_root().command, {}, "nosync", "_NOSYNC_COMPLETE").source())
