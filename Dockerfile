# The program alone: `docker build -t proctor .`, then `docker run --rm -u "$(id -u)" -v "$PWD:/work" proctor run`.
FROM rust:1.95-alpine AS build
# A C compiler, for SQLite and for the cryptography of TLS.
RUN apk add --no-cache build-base ca-certificates
WORKDIR /source
COPY . .
RUN cargo build --locked --release --features sqlite,parquet && strip target/release/proctor

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /source/target/release/proctor /usr/local/bin/
WORKDIR /work
ENTRYPOINT ["/usr/local/bin/proctor"]
