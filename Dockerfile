# scuted and scutectl, static, on nothing: no base image, no shell, no package manager, no user but 65532. `make image` builds both first.
FROM scratch
LABEL org.opencontainers.image.title=scute \
      org.opencontainers.image.licenses=Apache-2.0
COPY scuted scutectl /usr/local/bin/
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/scuted"]
