package assets

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Modules holds the folders of the Go modules whose manifests the test bed installs, in the versions of test/go.mod.
type Modules struct {
	ClusterAPI     string
	ClusterAPITest string
}

// FindModules returns the folders of the modules of Cluster API.
func FindModules(ctx context.Context) (Modules, error) {
	dirs, err := Folders(ctx, "test", "sigs.k8s.io/cluster-api", "sigs.k8s.io/cluster-api/test")
	if err != nil {
		return Modules{}, err
	}
	return Modules{ClusterAPI: dirs[0], ClusterAPITest: dirs[1]}, nil
}

// Folders returns the folders of modules in the module cache, in the versions that the go.mod in
// folder of of the checkout requires. It downloads missing modules.
func Folders(ctx context.Context, of string, modules ...string) ([]string, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	var out []byte
	for _, args := range [][]string{{"mod", "download"}, {"list", "-mod=readonly", "-m", "-f", "{{.Dir}}"}} {
		cmd := exec.CommandContext(ctx, "go", append(args, modules...)...)
		cmd.Dir = filepath.Join(root, of)
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
		if out, err = cmd.Output(); err != nil {
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
			}
			return nil, fmt.Errorf("finding the modules of %s: %w", cmd.Dir, err)
		}
	}
	return strings.Fields(string(out)), nil
}

// VersionOf returns the version of a module, from the name of its folder in the module cache. The
// build info of a test binary does not have the versions.
func VersionOf(folder string) string {
	if _, version, found := strings.Cut(filepath.Base(folder), "@"); found {
		return version
	}
	return "v0.0.0"
}
