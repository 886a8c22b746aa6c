"""What commands print, word for word: ``printed.txt`` holds the commands, their output and exit codes.

``python -m tests.cli.printed`` writes it anew, so that a commit shows what its change says differently.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

__all__ = ["ROOT", "cases", "rounded"]

ROOT = Path(__file__).resolve().parents[2]
_RECORD = Path(__file__).with_suffix(".txt")


def cases() -> dict[str, str]:
    """Return what each command prints, and its exit code in the last line."""
    blocks = re.split(r"^\$ ", _RECORD.read_text("utf-8"), flags=re.MULTILINE)[1:]
    return {
        command: text.strip("\n") for command, _, text in (one.partition("\n") for one in blocks)
    }


def rounded(text: str) -> str:
    """Return a text with six digits of long fractions: the others depend on the machine."""
    return re.sub(r"\d+\.\d{4,}(e[+-]\d+)?", lambda number: f"{float(number[0]):.6g}", text)


def main() -> None:
    """Run the commands of the record."""
    parts = []
    for command in cases():
        words = [sys.executable, "-m", "latencykit", *shlex.split(command)]
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
        parts.append(
            f"$ {command}\n{rounded(done.stdout)}{done.stderr}exit code {done.returncode}\n\n"
        )
    _RECORD.write_text("".join(parts), "utf-8")


if __name__ == "__main__":
    main()
