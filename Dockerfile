# scuted and scutectl, static, on nothing: no shell, no package manager, no user but 65532.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG TARGETOS TARGETARCH VERSION=unknown
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -ldflags "-s -w -X main.version=$VERSION" -o /out/scuted ./cmd/daemon && \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -ldflags "-s -w -X main.version=$VERSION" -o /out/scutectl ./cmd/ctl

FROM gcr.io/distroless/static:nonroot
LABEL org.opencontainers.image.title=scute \
      org.opencontainers.image.licenses=Apache-2.0
COPY --from=build /out/scuted /out/scutectl /usr/local/bin/
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/scuted"]
