"""Tasks and frames of the cloud are served side by side, under one name."""

from grpc_health.v1 import health_pb2, health_pb2_grpc

from edgeweave.rpc.channels import dial
from edgeweave.rpc.cloud_service import CLOUD_SERVICE
from edgeweave.v1 import cloud_pb2_grpc, common_pb2
from edgeweave.v1.cloud_pb2 import RunCloudTasksRequest, RunCloudTasksResponse
from fakes.lane_ends import Cloud, lane_edge


async def test_tasks_are_ordinary_messages_beside_raw_frames(cloud: Cloud) -> None:
    """The generated stub speaks to the method that is not special, on the server that also carries lanes."""
    async with dial(cloud.target) as channel, lane_edge(cloud.target):
        tasks = cloud_pb2_grpc.CloudServiceStub(channel).RunCloudTasks()
        await tasks.write(RunCloudTasksRequest(release=common_pb2.ReleaseSequences(sequences=[4, 5])))
        answer = await tasks.read()
        assert answer == RunCloudTasksResponse(released=common_pb2.Released(sequences=[4, 5]))
        tasks.cancel()


async def test_the_service_is_healthy_under_the_name_of_the_contract(cloud: Cloud) -> None:
    assert CLOUD_SERVICE == "edgeweave.v1.CloudService"
    async with dial(cloud.target) as channel:
        request = health_pb2.HealthCheckRequest(service=CLOUD_SERVICE)
        answer = await health_pb2_grpc.HealthStub(channel).Check(request)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
