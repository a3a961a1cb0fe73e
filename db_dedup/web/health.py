"""Whether the service works, and its metrics for Prometheus."""

from fastapi import APIRouter
from starlette.responses import Response

from db_dedup.extras import require
from db_dedup.web.context import NEEDS_READ, Ctx
from db_dedup.web.models import Health
from db_dedup.web.problems import RefusedError

router = APIRouter(prefix="/v1")


@router.get("/health/live")
async def live() -> Health:
    """Answer if the process runs. Needs no token."""
    return Health(status="live")


@router.get("/health/ready")
async def ready(context: Ctx) -> Health:
    """Answer if the service can work: it is prepared and the database answers. Needs no token."""
    if not await context.readiness.is_ready():
        raise RefusedError("busy", "The service is not ready.")
    return Health(status="ready")


@router.get("/metrics", dependencies=[NEEDS_READ], response_class=Response)
async def metrics(context: Ctx) -> Response:
    """Show metrics for Prometheus: queues, scans, and the requests to this service."""

    def read() -> Response:
        require("prometheus_client", "metrics")
        from db_dedup.web.metrics import exposition  # noqa: PLC0415 - needs the extra

        tables = context.tables
        text, media_type = exposition(tables.database, tables.names(), context.requests)
        return Response(text, media_type=media_type)

    return await context.threads.run(read)
