"""`make fuzz`: hostile bytes for everything that is read back.

Each attack has a number: `--first 123 --rounds 1 --only layer` repeats one. A fault ends the command with the attack's number; a process
that dies has said before which attack it was at.
"""

import argparse
import sys
import tempfile
import warnings
from pathlib import Path
from random import Random

from nosync.model.errors import Internal, NosyncError
from tests.security.formats import FORMATS


def attacked(name: str, number: int) -> str:
    """What went wrong; empty where the attack was answered as it should be."""
    form = FORMATS[name]
    with tempfile.TemporaryDirectory(prefix="nosync-fuzz-") as folder:
        try:
            form.read(form.attack(Random(f"{name} {number}")), Path(folder))
        except NosyncError as error:
            return f"Internal: {error}" if isinstance(error, Internal) else ""
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", choices=FORMATS)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    faults = 0
    for name in [arguments.only] if arguments.only else FORMATS:
        for number in range(arguments.first, arguments.first + arguments.rounds):
            print(f"\r{name} {number}", end="", file=sys.stderr, flush=True)
            if fault := attacked(name, number):
                print(f'\n--only "{name}" --first {number} --rounds 1: {fault}', flush=True)
                faults += 1
    print(f"\n{len(FORMATS)} formats, {arguments.rounds} attacks each, {faults} faults", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
