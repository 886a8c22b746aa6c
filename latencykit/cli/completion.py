"""``latencykit completion``."""

from __future__ import annotations

import click


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the script that completes commands and options in a shell.

    \b
    latencykit completion bash >> ~/.bashrc
    latencykit completion fish > ~/.config/fish/completions/latencykit.fish
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    root = click.get_current_context().find_root().command
    click.echo(kind(root, {}, "latencykit", "_LATENCYKIT_COMPLETE").source())
