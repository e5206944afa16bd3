# One image for all of DataFlow's containers; docker-compose.yml says which process each runs.
ARG PYTHON_TAG=3.11-slim-bookworm
FROM python:${PYTHON_TAG}

RUN useradd --uid 10001 --create-home dataflow \
    && install -d -o dataflow -g dataflow /opt/dataflow /data
WORKDIR /opt/dataflow

# Packages first: they change less often than the code. Versions and hashes come from the lock files.
COPY requirements-setup.lock requirements.lock ./
RUN pip install --no-cache-dir --require-hashes -r requirements-setup.lock \
    && uv pip install --system --no-cache --require-hashes --compile-bytecode -r requirements.lock

COPY . .
RUN uv pip install --system --no-cache --no-deps --no-build-isolation -e . \
    && python -m compileall -q dataflow_ops \
    && chown -R dataflow:dataflow /opt/dataflow

USER dataflow
# Kernels are compiled once, here, not by the first task of every container.
RUN python -m dataflow_ops.kernels.warm
CMD ["dataflow", "--help"]
