# The server alone: two static programs, certificates to fetch an identity provider's keys with, and three empty folders.
# There is no shell, no package manager and no root. scripts/server-image.sh puts what is copied here into one folder and builds it:
#
#   make server-image
#
# compose.yaml runs it, and docs/installing.md says what access to an engine's socket means.
FROM scratch
COPY programs/ /
COPY --chown=65532:65532 folders/ /
ENV CELLBLOCK_DATA_DIR=/data \
    CELLBLOCK_RUN_DIR=/run/cellblock \
    HOME=/data \
    SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt
ARG VERSION=dev
LABEL org.opencontainers.image.title="cellblock" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.licenses="MIT"
USER 65532:65532
WORKDIR /data
EXPOSE 8787
STOPSIGNAL SIGTERM
ENTRYPOINT ["/cellblock"]
CMD ["serve"]
