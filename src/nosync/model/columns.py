"""Names of columns that ride along with a user's: reserved."""

DIFF = "_diff"  # how often a row is added; negative where it is removed
HASH = "_hash"  # of the key: decides the shard
ROW = "_row"  # the hash of the whole row
GHOST = "_ghost"  # whether the row stands for nothing but its group
GROUP = "_group"  # the bytes of a group's key
SIDE = "_side"  # of a join: which one a row comes from
TELLS = "_tells"  # of a join: which side a row speaks for, or that it is a pair
