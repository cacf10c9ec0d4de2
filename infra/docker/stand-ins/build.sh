#!/usr/bin/env bash
# Builds images that stand in for those that docker-compose.yml names, where no registry of images can be reached. They
# are made of Debian's packages, Node from npm and Kafka's jars, under the vendors' names and the label
# weir.stand-in=true. They prove Weir's own files, not the vendors' images. Needs root, debootstrap and a Docker engine.
#   infra/docker/stand-ins/build.sh WORKDIR    # WORKDIR keeps what was fetched
set -euo pipefail
work=$(mkdir -p "${1:?the folder to work in}" && cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
base=weir-stand-in:trixie
images=(node:24-trixie-slim redis:8.8.3-alpine apache/kafka:4.1.1 clickhouse/clickhouse-server:26.3 prom/prometheus:v3.5.0)
# Images of these very files need not be built again.
of=$(cat "$here"/* "$root/infra/local/kafka/pom.xml" "$root/pnpm-lock.yaml" | sha256sum | cut -c 1-16)
label=(--label weir.stand-in=true --label "weir.stand-in.of=$of")
found=$(docker image inspect --format '{{index .Config.Labels "weir.stand-in.of"}}' "${images[@]}" 2>/dev/null | grep -c "^$of$" || true)
[ "$found" != "${#images[@]}" ] || exit 0

# One Debian for all: packages are fetched outside of containers, which know no proxy or certificates of this machine.
if [ ! -f "$work/debian.tar" ]; then
  packages=redis-server,redis-sentinel,prometheus,wget,ca-certificates,openjdk-21-jre-headless,procps
  rm -rf "$work/debian"
  debootstrap --variant=minbase --include="$packages" trixie "$work/debian"
  # Debian's Compose, which older systems do not have.
  chroot "$work/debian" sh -c 'cd /tmp && apt-get update -q && apt-get download -q docker-compose'
  dpkg -x "$work"/debian/tmp/docker-compose_*.deb "$work/compose"
  rm -rf "$work"/debian/tmp/* "$work/debian/var/cache/apt/archives" "$work/debian/var/lib/apt/lists"
  tar -C "$work/debian" -cf "$work/debian.tar.part" . && mv "$work/debian.tar.part" "$work/debian.tar"
  rm -rf "$work/debian"
fi
docker image inspect "$base" >/dev/null 2>&1 || docker import --change 'LABEL weir.stand-in=true' "$work/debian.tar" "$base"

# What no package has: this checkout's Node with npm, Kafka's jars, and the local ClickHouse with its engine.
context="$work/context"
rm -rf "$context" && mkdir -p "$context/weir"
cp "$root/node_modules/node/bin/node" "$context/node"
cp -r "$(npm root -g)/npm" "$context/npm"
libs=$("$root/node_modules/node/bin/node" --input-type=module -e '
  const { findProgram } = await import(process.argv[1])
  const { kafkaProgram } = await import(process.argv[2])
  console.log(await findProgram(kafkaProgram, { environment: process.env, tell() {} }))' \
  "$root/infra/local/programs/src/find-program.ts" "$root/infra/local/programs/src/server-programs.ts")
cp -r "$libs" "$context/libs"
git -C "$root" ls-files -z | (cd "$root" && xargs -0 tar -cf - --ignore-failed-read) | tar -C "$context/weir" -xf -
(cd "$context/weir" &&
  CI=1 node "$root/.weir/tools/node_modules/pnpm/bin/pnpm.cjs" install --frozen-lockfile --prod --filter '@weir/local-clickhouse...')
cp "$here"/*.sh "$context/"

for image in "${images[@]}"; do
  target=${image%%:*}
  docker build "${label[@]}" --file "$here/images.Dockerfile" --target "${target##*/}" --tag "$image" "$context"
done
