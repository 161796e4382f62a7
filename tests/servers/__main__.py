"""`make servers`: builds or installs what is not there yet, all or what is named, and says where it is."""

import sys

from tests.servers.installing import kafka, postgres, s3s_fs, spark_kafka, versitygw

SERVERS = {"versitygw": versitygw, "s3s-fs": s3s_fs, "kafka": kafka, "postgres": postgres, "spark-kafka": spark_kafka}

for name in sys.argv[1:] or ("versitygw", "s3s-fs"):
    print(SERVERS[name](), flush=True)
