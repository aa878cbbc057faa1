"""API keys.

Knows which keys are good, and checks them before a body is read. Does not know whose they are.
"""

from collections.abc import Sequence
from hashlib import sha256
from hmac import compare_digest

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from edgeweave.errors import AuthenticationError

_GUARDED = "/v1/"


class ApiKeys:
    """Lets requests to `/v1/` and to paths of `also` pass that show one of `keys` as a bearer token; without keys, all.

    Raises AuthenticationError for any other.
    """

    def __init__(self, app: ASGIApp, *, keys: Sequence[str], also: Sequence[str] = ()) -> None:
        self._app = app
        self._also = frozenset(also)
        # Digests have one length, so that a comparison tells nothing about a key.
        self._digests = [_digest(key) for key in keys]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check the key, then go on."""
        if self._digests and scope["type"] == "http" and self._is_guarded(scope["path"]):
            self._check(Headers(scope=scope).get("authorization", ""))
        await self._app(scope, receive, send)

    def _is_guarded(self, path: str) -> bool:
        return path.startswith(_GUARDED) or path in self._also

    def _check(self, authorization: str) -> None:
        scheme, _, token = authorization.partition(" ")
        shown = _digest(token.strip())
        # Every key is compared, so that the time does not tell which one is near.
        matches = [compare_digest(shown, digest) for digest in self._digests]
        if scheme.lower() != "bearer" or not any(matches):
            raise AuthenticationError("the API key is missing or wrong; send `Authorization: Bearer KEY`")


def _digest(key: str) -> bytes:
    return sha256(key.encode()).digest()
