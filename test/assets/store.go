package assets

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

// gateway serves S3 from a folder. Its modules are apart from those of the other servers: it needs newer versions of what they share.
var gateway = program{name: "versitygw", pkg: "github.com/versity/versitygw/cmd/versitygw", module: "github.com/versity/versitygw"}

// FindStore returns the program of the S3-compatible store, after building it if it was not built before, which takes minutes.
func FindStore(ctx context.Context, progress io.Writer) (path string, err error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	source := filepath.Join(root, "test", "binaries", "s3")
	versions, err := requiredVersions(filepath.Join(source, "go.mod"))
	if err != nil {
		return "", err
	}
	version := versions[gateway.module]
	target := filepath.Join(root, ".testbed", "bin", fmt.Sprintf("%s-%s-%s-%s", gateway.name, version, runtime.GOOS, runtime.GOARCH))
	if err := os.MkdirAll(target, 0o755); err != nil {
		return "", fmt.Errorf("building the store of the test bed: %w", err)
	}
	unlock, err := lock(ctx, filepath.Join(target, ".lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	path = filepath.Join(target, gateway.name)
	if isExecutable(path) {
		return path, nil
	}
	return path, build(ctx, progress, source, target, gateway, version)
}
