# One image a service: docker build -f infra/docker/service.Dockerfile --build-arg SERVICE=ingress -t weir-ingress .
# SERVICE is the folder of one of services/, or cli for the one-shot commands (topics, migrate).
FROM node:24-trixie-slim AS build
ARG SERVICE
WORKDIR /weir
COPY . .
# The service and what it imports. The local ClickHouse brings an engine of half a gigabyte that only `weir up` runs.
# A registry of your own: --secret id=npmrc,src=$HOME/.npmrc --secret id=ca,src=FILE (docker-compose.yml does it). No layer has them.
RUN --mount=type=cache,target=/pnpm-store \
    --mount=type=secret,id=npmrc \
    --mount=type=secret,id=ca \
    export npm_config_userconfig=/run/secrets/npmrc NODE_EXTRA_CA_CERTS="$(find /run/secrets/ca -size +0 2>/dev/null)" && \
    npm ci --prefix infra/pnpm --omit=optional --ignore-scripts --no-audit --no-fund && \
    node infra/pnpm/node_modules/pnpm/bin/pnpm.cjs install --frozen-lockfile --prod --store-dir /pnpm-store \
      --filter "@weir/${SERVICE}..." --filter '!@weir/local-clickhouse'
# One name for the program, wherever it lies; this also stops the build when there is no such service.
RUN ln -s "$(ls -d "services/${SERVICE}" "packages/${SERVICE}" 2>/dev/null)" program && test -f program/src/main.ts

FROM node:24-trixie-slim
LABEL org.opencontainers.image.title="Weir" org.opencontainers.image.licenses="Apache-2.0"
ENV NODE_ENV=production
WORKDIR /weir
# The layout stays that of the workspace: Node runs TypeScript as it is only outside node_modules.
COPY --from=build /weir /weir
# A volume that is mounted here for the first time takes over the folder's owner.
RUN install -d -o node -g node -m 700 /var/lib/weir/journal
USER node
# Liveness only: an outage of another server must not have the container replaced. Compose asks for readiness.
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.WEIR_OPS_PORT}/livez`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "program/src/main.ts"]
