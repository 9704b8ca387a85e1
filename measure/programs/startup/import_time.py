# SPDX-License-Identifier: Apache-2.0
"""What a fresh process takes for `import warpcipher` and `warpcipher --version`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from common import Row, parser, report, seconds


def main() -> None:
    options = parser(__doc__).parse_args()
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "python -c 'import warpcipher'": [sys.executable, "-c", "import warpcipher"],
        "warpcipher --version": [sys.executable, "-m", "warpcipher.cli", "--version"],
    }
    rows = []
    for name, command in commands.items():

        def start(command: list[str] = command) -> None:
            subprocess.run(command, check=True, capture_output=True)

        times = seconds(start, options.repetitions)
        rows.append(Row(name, "ms", [1000 * t for t in times]))
    report(rows, options)


if __name__ == "__main__":
    main()
