FROM oven/bun:1.4.4 AS build
WORKDIR /src
COPY package.json bun.lock ./
COPY scripts/seed.ts scripts/tar.ts scripts/
COPY patches patches
# The rest of what an install makes needs the source; the build makes it.
RUN bun install --frozen-lockfile --ignore-scripts && bun scripts/seed.ts
COPY . .
# What `prompt-signals version` shows: --build-arg BUILD_COMMIT=$(git rev-parse --short=12 HEAD)
ARG BUILD_COMMIT=unknown
RUN bun run build && mkdir /data

# glibc and libgcc, no shell, no package manager.
FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /src/dist/prompt-signals /prompt-signals
COPY --from=build --chown=nonroot:nonroot /data /data
# Without its volume the service would start again on an empty folder; `init` creates the database.
ENV HOST=0.0.0.0 PORT=3000 DATA_DIR=/data REQUIRE_DATABASE=on
EXPOSE 3000
VOLUME /data
# Liveness, because what restarts unhealthy containers must not do so while the database is away. Readiness is /readyz.
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s CMD ["/prompt-signals", "healthcheck", "--live"]
ENTRYPOINT ["/prompt-signals"]
CMD ["serve"]
