"""Settings of the services: fields with unit, default and meaning, set by file, environment and flags."""

from edgeweave.settings.cloud import CloudSettings
from edgeweave.settings.common import CommonSettings, TlsSettings
from edgeweave.settings.edge import EdgeSettings
from edgeweave.settings.engine import EngineSettings
from edgeweave.settings.gateway import GatewaySettings
from edgeweave.settings.load import load
from edgeweave.settings.scheduler import SchedulerSettings

__all__ = [
    "CloudSettings",
    "CommonSettings",
    "EdgeSettings",
    "EngineSettings",
    "GatewaySettings",
    "SchedulerSettings",
    "TlsSettings",
    "load",
]
