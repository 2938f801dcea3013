package assets

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

// These are built each into a folder of its version. gateway serves S3 from a folder, age decrypts; their modules are apart from those of the
// servers, as they need newer versions of what they share. etcdutl restores what etcd has.
var (
	gateway = program{name: "versitygw", pkg: "github.com/versity/versitygw/cmd/versitygw", module: "github.com/versity/versitygw"}
	age     = program{name: "age", pkg: "filippo.io/age/cmd/age", module: "filippo.io/age"}
	etcdutl = program{name: "etcdutl", pkg: "go.etcd.io/etcd/etcdutl/v3", module: "go.etcd.io/etcd/etcdutl/v3"}
)

// FindStore returns the program of the S3-compatible store, after building it if it was not built before, which takes minutes.
func FindStore(ctx context.Context, progress io.Writer) (path string, err error) {
	return single(ctx, progress, gateway, "binaries", "s3")
}

// FindRestorers returns the folders of age, and of the etcdutl of the etcd that Find builds, after building those that were not built before.
func FindRestorers(ctx context.Context, progress io.Writer) (folders []string, err error) {
	decrypts, err := single(ctx, progress, age, "binaries", "s3")
	if err != nil {
		return nil, err
	}
	restores, err := single(ctx, progress, etcdutl, "binaries")
	if err != nil {
		return nil, err
	}
	return []string{filepath.Dir(decrypts), filepath.Dir(restores)}, nil
}

// single returns a program of the module in a folder of test, after building it if it was not built before.
func single(ctx context.Context, progress io.Writer, p program, module ...string) (path string, err error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	source := filepath.Join(append([]string{root, "test"}, module...)...)
	versions, err := requiredVersions(filepath.Join(source, "go.mod"))
	if err != nil {
		return "", err
	}
	version := versions[p.module]
	target := filepath.Join(root, ".testbed", "bin", fmt.Sprintf("%s-%s-%s-%s", p.name, version, runtime.GOOS, runtime.GOARCH))
	if err := os.MkdirAll(target, 0o755); err != nil {
		return "", fmt.Errorf("building %s of the test bed: %w", p.name, err)
	}
	unlock, err := lock(ctx, filepath.Join(target, ".lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	path = filepath.Join(target, p.name)
	if isExecutable(path) {
		return path, nil
	}
	return path, build(ctx, progress, source, target, p, version)
}
