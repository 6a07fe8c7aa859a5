# Workers and the dispatcher: everything.
FROM python:3.12-slim AS build
# Index of PyTorch's CPU builds, as its installation page names it. Without it pip takes the
# default build for Linux, which brings gigabytes of CUDA:
#   docker compose build --build-arg TORCH_INDEX_URL=... worker
ARG TORCH_INDEX_URL=
WORKDIR /source
RUN python -m venv /venv
COPY constraints.txt ./
RUN /venv/bin/pip install --no-cache-dir ${TORCH_INDEX_URL:+--index-url "$TORCH_INDEX_URL"} \
    "$(grep -m1 '^torch==' constraints.txt)"
COPY pyproject.toml README.md LICENSE ./
COPY vnce vnce
COPY service service
COPY worker worker
COPY vnce_engine vnce_engine
RUN /venv/bin/pip install --no-cache-dir --constraint constraints.txt '.[worker]'
RUN ln -s "$(/venv/bin/python -P -c 'import vnce; print(*vnce.__path__)')" /venv/vnce

FROM python:3.12-slim
# An account with a name: Celery takes a group without one for the superuser's.
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /nonexistent vnce
COPY --from=build /venv /venv
# The root file system is read-only: what libraries cache goes to /tmp.
# With /venv/vnce, `python -m service` is here what it is in the repository.
ENV PATH=/venv/bin:$PATH PYTHONPATH=/venv/vnce PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    MPLCONFIGDIR=/tmp/matplotlib XDG_CACHE_HOME=/tmp/cache
USER 10001:10001
