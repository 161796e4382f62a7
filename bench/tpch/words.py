"""The vocabularies of the TPC-H tables, after the public specification."""

REGIONS = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"]
NATIONS = [  # name, number of its region
    ("ALGERIA", 0), ("ARGENTINA", 1), ("BRAZIL", 1), ("CANADA", 1), ("EGYPT", 4), ("ETHIOPIA", 0), ("FRANCE", 3), ("GERMANY", 3),
    ("INDIA", 2), ("INDONESIA", 2), ("IRAN", 4), ("IRAQ", 4), ("JAPAN", 2), ("JORDAN", 4), ("KENYA", 0), ("MOROCCO", 0),
    ("MOZAMBIQUE", 0), ("PERU", 1), ("CHINA", 2), ("ROMANIA", 3), ("SAUDI ARABIA", 4), ("VIETNAM", 2), ("RUSSIA", 3),
    ("UNITED KINGDOM", 3), ("UNITED STATES", 1),
]  # fmt: skip
ASKED_NATIONS = [2, 3, 6, 7, 8, 20]  # those the queries name, and one of ASIA
SEGMENTS = ["BUILDING", "AUTOMOBILE", "FURNITURE", "HOUSEHOLD", "MACHINERY"]
PRIORITIES = ["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"]
MODES = ["AIR", "MAIL", "SHIP", "AIR REG", "RAIL", "TRUCK", "FOB"]
INSTRUCTIONS = ["DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"]
SIZES = ["STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"]
FINISHES = ["ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"]
METALS = ["TIN", "NICKEL", "BRASS", "STEEL", "COPPER"]
CONTAINER_SIZES = ["SM", "LG", "MED", "JUMBO", "WRAP"]
CONTAINER_KINDS = ["CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"]
COLORS = ["green", "forest", "almond", "blue", "chiffon", "dodger", "firebrick", "honeydew", "ivory", "lace", "navy", "olive", "plum"]
TEXT = ["furiously", "ironic", "deposits", "sleep", "quickly", "final", "accounts", "above", "the", "pending", "theodolites", "express"]
ASKED_PARTS = [  # brand, type, container, size: what q2, q8, q14, q16, q17 and q19 look for
    ("Brand#12", "ECONOMY ANODIZED STEEL", "SM CASE", 3),
    ("Brand#23", "PROMO BURNISHED COPPER", "MED BOX", 7),
    ("Brand#34", "LARGE BRUSHED BRASS", "LG PACK", 15),
    ("Brand#31", "SMALL PLATED BRASS", "JUMBO JAR", 15),
]
