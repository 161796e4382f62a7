"""Names of columns that ride along with a user's: reserved."""

DIFF = "_diff"  # how often a row is added; negative where it is removed
EPOCH = "_epoch"  # the epoch in which a row came
TIME = "_time"  # when the epoch was opened in which a row came
HASH = "_hash"  # of the key: decides the shard
ROW = "_row"  # in diffs: the hash of the whole row, or its rank where rows are kept in order
COUNT = "_count"  # in diffs: how often a row is there, signed
BLOOM = "_bloom"  # in layers: the Bloom filter of a block
GHOST = "_ghost"  # whether the row stands for nothing but its group
GROUP = "_group"  # the bytes of a group's key
SIDE = "_side"  # of a join: which one a row comes from
PART = "_part"  # of a join: whether a row is a pair, or a row of one side
SHARD = "_shard"  # where a blob goes
RAW, REASON, FILE = REJECTION = ("_raw", "_reason", "_file")  # of a row that does not fit: its text, why, and where it was read
POSITION = ("_p0", "_p1", "_p2")  # of a row in its input, compared from left to right
SEQUENCE = "_sequence"  # which of several changes of a key is the newest
