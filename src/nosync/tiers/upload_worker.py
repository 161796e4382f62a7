"""The copying process: reads names as JSON lines, answers each with the bytes that travelled or with an error. Of `UploadProcess`."""

import json
import sys
from pathlib import Path

from nosync.store.disk import LocalDisk
from nosync.store.objects import open_remote
from nosync.tiers.background import arguments, lower_priority
from nosync.tiers.uploading import PRIORITY, answer


def main() -> None:
    url, home = arguments()
    lower_priority(PRIORITY)
    remote, disk = open_remote(url), LocalDisk(Path(home))
    for line in sys.stdin:
        print(json.dumps(answer(remote, json.loads(line), disk)), flush=True)


if __name__ == "__main__":
    main()
