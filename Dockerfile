FROM python:3.13-slim AS build
WORKDIR /src
RUN python -m venv /opt/office
COPY requirements/runtime.lock requirements/runtime.lock
RUN /opt/office/bin/pip install --no-cache-dir --require-hashes -r requirements/runtime.lock
COPY pyproject.toml README.md LICENSE ./
COPY office_tasks office_tasks
COPY db db
COPY recovery recovery
RUN /opt/office/bin/pip install --no-cache-dir --no-deps .

FROM python:3.13-slim
RUN useradd --system --create-home --home-dir /home/office --shell /usr/sbin/nologin office
COPY --from=build /opt/office /opt/office
ENV PATH=/opt/office/bin:$PATH PYTHONUNBUFFERED=1
USER office
WORKDIR /home/office
ENTRYPOINT []
CMD ["office", "--help"]
