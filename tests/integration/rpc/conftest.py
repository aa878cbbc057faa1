"""A cloud's end of the lanes, served for one test."""

from collections.abc import AsyncIterator

import pytest

from fakes.lane_ends import Cloud, lane_cloud


@pytest.fixture
async def cloud() -> AsyncIterator[Cloud]:
    async with lane_cloud() as cloud:
        yield cloud
