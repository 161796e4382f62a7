"""Layers that travel by TLS, with a certificate of the user's."""

import datetime
import ipaddress
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from nosync.model.errors import Unavailable
from nosync.model.places import Tls
from nosync.peers.client import fetch
from nosync.peers.home import HomeServer
from nosync.state.layer import open_layer
from tests.peers.test_serving import RUN, written


def certificate(folder: Path) -> Tls:
    """One that signs itself, good for loopback."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "shop")])
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
    builder = builder.not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(now + datetime.timedelta(days=1))
    loopback = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    signed = builder.add_extension(loopback, False).add_extension(x509.BasicConstraints(True, None), True).sign(key, hashes.SHA256())
    folder.mkdir()
    (folder / "certificate").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    (folder / "key").write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))
    return Tls(str(folder / "certificate"), str(folder / "key"), str(folder / "certificate"))


def test_layers_travel_by_tls_between_those_who_know_the_certificate(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    layer = written(tmp_path / "home")
    server = HomeServer(RUN, tmp_path / "home", "127.0.0.1", "127.0.0.1", tls=certificate(tmp_path / "tls"))
    sharing = server.sharing
    try:
        fetch(sharing, sharing.driver, layer, tmp_path / "here")
        assert open_layer(tmp_path / "here", layer).rows == 3
        for tls in (None, certificate(tmp_path / "others")):
            stranger = replace(sharing, token=sharing.token[::-1], tls=tls)  # another token: connections are kept by it
            with pytest.raises(Unavailable):
                fetch(stranger, sharing.driver, layer, tmp_path / "there")
    finally:
        server.close()
