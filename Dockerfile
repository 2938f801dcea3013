# The bases are named by tag. Give them by digest where a build must be the same each time: --build-arg GO_IMAGE=golang@sha256:... and
# BASE_IMAGE=gcr.io/distroless/static@sha256:...
ARG GO_IMAGE=golang:1.26.8 BASE_IMAGE=gcr.io/distroless/static:nonroot
# scuted and scutectl, static, on nothing: no shell, no package manager, no user but 65532.
FROM --platform=$BUILDPLATFORM $GO_IMAGE AS build
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

FROM $BASE_IMAGE
LABEL org.opencontainers.image.title=scute \
      org.opencontainers.image.licenses=Apache-2.0
COPY --from=build /out/scuted /out/scutectl /usr/local/bin/
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/scuted"]
