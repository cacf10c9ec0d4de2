# Images that stand in for the vendors': build.sh has what they are made of.
FROM weir-stand-in:trixie AS node
COPY node /usr/local/bin/node
COPY npm /usr/local/lib/node_modules/npm
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm && useradd --uid 1000 --user-group --create-home node

FROM weir-stand-in:trixie AS redis
COPY redis-start.sh /usr/local/bin/
RUN install -d -o redis -g redis /data
USER redis
WORKDIR /data
EXPOSE 6379
ENTRYPOINT ["redis-start.sh"]
CMD ["redis-server"]

FROM weir-stand-in:trixie AS kafka
COPY libs /opt/kafka/libs
COPY kafka-start.sh /opt/kafka/start.sh
COPY kafka-broker-api-versions.sh /opt/kafka/bin/
RUN useradd --uid 1000 appuser && install -d -o appuser /var/lib/kafka/data
USER appuser
ENV CLUSTER_ID=5L6g3nShT-eMCtK--X86sw
EXPOSE 9092
CMD ["/opt/kafka/start.sh"]

FROM node AS clickhouse-server
COPY --chown=node weir /weir
RUN install -d -o node -g node /var/lib/clickhouse
USER node
WORKDIR /weir
EXPOSE 8123
CMD ["node", "infra/local/clickhouse/src/main.ts", "--host", "0.0.0.0", "--name", "clickhouse", "--path", "/var/lib/clickhouse"]

FROM weir-stand-in:trixie AS prometheus
RUN install -d -o nobody -g nogroup /prometheus
USER nobody
WORKDIR /prometheus
EXPOSE 9090
ENTRYPOINT ["/usr/bin/prometheus"]
CMD ["--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus"]
