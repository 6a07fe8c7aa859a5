# The HTTP API and the migrations: the `service` extra alone, no numerical libraries.
FROM python:3.12-slim AS build
WORKDIR /source
RUN python -m venv /venv
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY vnce vnce
COPY service service
COPY worker worker
COPY vnce_engine vnce_engine
RUN /venv/bin/pip install --no-cache-dir --constraint constraints.txt '.[service]'
RUN ln -s "$(/venv/bin/python -P -c 'import vnce; print(*vnce.__path__)')" /venv/vnce

FROM python:3.12-slim
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /nonexistent vnce
COPY --from=build /venv /venv
# With /venv/vnce, `python -m service` is here what it is in the repository.
ENV PATH=/venv/bin:$PATH PYTHONPATH=/venv/vnce PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 10001:10001
