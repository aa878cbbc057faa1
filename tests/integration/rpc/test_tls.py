"""Between sites everything is mutual TLS: who shows no certificate of the authority is not served.

The keys in `tls/` belong to these tests alone: an authority, an engine that it signed for 127.0.0.1, and a stranger.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from edgeweave.errors import InvalidSettingsError, UnavailableError
from edgeweave.rpc.channels import connect, dial
from edgeweave.rpc.server import GrpcServer
from edgeweave.settings.common import TlsSettings

FOLDER = Path(__file__).parent / "tls"


def _tls(name: str) -> TlsSettings:
    return TlsSettings(
        ca_file=FOLDER / "authority.pem", cert_file=FOLDER / f"{name}.pem", key_file=FOLDER / f"{name}.key"
    )


@pytest.fixture
async def target() -> AsyncIterator[str]:
    server = GrpcServer("127.0.0.1:0", tls=_tls("engine"))
    await server.start()
    yield f"127.0.0.1:{server.port}"
    await server.stop(grace_s=0)


async def test_two_sides_of_one_authority_talk(target: str) -> None:
    async with dial(target, tls=_tls("engine")) as channel:
        answer = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
        assert answer.status == health_pb2.HealthCheckResponse.SERVING


@pytest.mark.parametrize("tls", [None, _tls("stranger")], ids=["no certificate", "another authority"])
async def test_whoever_cannot_show_a_certificate_is_not_served(target: str, tls: TlsSettings | None) -> None:
    async with dial(target, tls=tls) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=5)
        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_a_server_of_another_authority_is_not_trusted() -> None:
    server = GrpcServer("127.0.0.1:0", tls=_tls("stranger"))
    await server.start()
    target = f"127.0.0.1:{server.port}"
    async with dial(target, tls=_tls("engine")) as channel:
        with pytest.raises(UnavailableError, match=target):
            await connect(channel, target=target, timeout_s=0.5)
    await server.stop(grace_s=0)


async def test_a_file_that_is_missing_is_named() -> None:
    tls = TlsSettings(ca_file=FOLDER / "no.pem", cert_file=FOLDER / "engine.pem", key_file=FOLDER / "engine.key")
    with pytest.raises(InvalidSettingsError, match=r"cannot read the TLS file .*no\.pem: No such file"):
        await GrpcServer("127.0.0.1:0", tls=tls).start()


async def test_files_that_are_no_certificates_are_told_in_one_line() -> None:
    tls = TlsSettings(ca_file=FOLDER / "authority.pem", cert_file=Path(__file__), key_file=Path(__file__))
    with pytest.raises(InvalidSettingsError, match="are not PEM files that belong together"):
        await GrpcServer("127.0.0.1:0", tls=tls).start()
