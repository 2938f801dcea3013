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

// Modules are the folders of the Go modules whose manifests the test bed installs, in the versions that this program
// was built with.
type Modules struct {
	ClusterAPI     string
	ClusterAPITest string
}

// FindModules asks the go command where the modules lie.
func FindModules(ctx context.Context) (Modules, error) {
	root, err := Root()
	if err != nil {
		return Modules{}, err
	}
	cmd := exec.CommandContext(ctx, "go", "list", "-mod=readonly", "-m", "-f", "{{.Dir}}",
		"sigs.k8s.io/cluster-api", "sigs.k8s.io/cluster-api/test")
	cmd.Dir = filepath.Join(root, "test")
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
		}
		return Modules{}, fmt.Errorf("finding the Cluster API modules: %w", err)
	}
	dirs := strings.Fields(string(out))
	if len(dirs) != 2 {
		return Modules{}, fmt.Errorf("finding the Cluster API modules: they are not in the module cache: run `go mod download` in %s", cmd.Dir)
	}
	return Modules{ClusterAPI: dirs[0], ClusterAPITest: dirs[1]}, nil
}

// VersionOf returns the version of a module by its folder in the module cache: a test program is not told the versions that
// it was built with.
func VersionOf(folder string) string {
	if _, version, found := strings.Cut(filepath.Base(folder), "@"); found {
		return version
	}
	return "v0.0.0"
}
