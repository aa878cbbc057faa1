"""An image as its Dockerfile describes it: what runs in it, as whom, and how it is asked for its health."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_ENTRY = re.compile(r"^CMD (\[.+\])$", re.MULTILINE)
_HEALTH = re.compile(r"^HEALTHCHECK .+\\\n +CMD (\[.+\])$", re.MULTILINE)
_VARIABLE = re.compile(r"^(?:ENV|   ) (PYTHON\w+)=(\S+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Image:
    """What is written in a Dockerfile. `stages` are its texts, the last of them what becomes the image."""

    stages: tuple[str, ...]

    @property
    def entry(self) -> list[str]:
        """The command that a container runs."""
        return list(json.loads(self._only(_ENTRY)))

    @property
    def health_check(self) -> list[str]:
        """The command that asks for its health."""
        return list(json.loads(self._only(_HEALTH)))

    @property
    def variables(self) -> dict[str, str]:
        """The variables of Python that it sets."""
        return dict(_VARIABLE.findall(self.stages[-1]))

    @property
    def user(self) -> str:
        """Who runs the command."""
        return self._only(re.compile(r"^USER (\S+)$", re.MULTILINE))

    @property
    def port(self) -> str:
        """The port that is exposed."""
        return self._only(re.compile(r"^EXPOSE (\S+)$", re.MULTILINE))

    def _only(self, pattern: re.Pattern[str]) -> str:
        (found,) = pattern.findall(self.stages[-1])
        return str(found)


def image_of(service: str) -> Image:
    """Return the image of a service."""
    text = dockerfile_of(service).read_text(encoding="utf-8")
    return Image(tuple(re.split(r"^(?=FROM )", text, flags=re.MULTILINE)[1:]))


def dockerfile_of(service: str) -> Path:
    """Return the path of a service's Dockerfile."""
    return ROOT / "services" / service / "Dockerfile"
