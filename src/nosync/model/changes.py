"""What the words of a change log mean. Pure.

Known are the words of Debezium (c, r, u, d), of Flink (+I, -U, +U, -D), of Delta's change data feed, plain English, and 1 and -1.
"""

ADDING = ("c", "r", "i", "create", "read", "insert", "+i", "1", "+1")
REMOVING = ("d", "delete", "-d", "-1")
REPLACING = ("u", "update", "upsert")  # one row stands for the change: as it is now
AFTER = ("+u", "update_after", "update_postimage")  # and these come in pairs
BEFORE = ("-u", "update_before", "update_preimage")


def effects(keyed: bool) -> dict[tuple[str, ...], int]:
    """How often a row with such a word is added. With a key, what an update replaces is known from the key: 0, nothing to do.

    Without a key nobody knows what a single row of an update replaces: such words are left out.
    """
    if keyed:
        return {ADDING + AFTER + REPLACING: 1, REMOVING: -1, BEFORE: 0}
    return {ADDING + AFTER: 1, REMOVING + BEFORE: -1}
