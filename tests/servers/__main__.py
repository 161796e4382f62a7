"""`make servers`: builds what is not there yet, and says where it is."""

from tests.servers.installing import s3s_fs, versitygw

for build in (versitygw, s3s_fs):
    print(build(), flush=True)
