package assets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// EnvAssets is the environment variable for a folder of prebuilt binaries, as in controller-runtime's envtest.
const EnvAssets = "KUBEBUILDER_ASSETS"

const (
	etcd              = "etcd"
	apiServer         = "kube-apiserver"
	controllerManager = "kube-controller-manager"
)

// Binaries are the absolute paths of the server programs.
type Binaries struct {
	Etcd              string
	APIServer         string
	ControllerManager string
}

// Find returns the server programs. If KUBEBUILDER_ASSETS is set, etcd and kube-apiserver must
// exist in that folder, and kube-controller-manager comes from it if it exists there. Find builds
// the other ones.
func Find(ctx context.Context, progress io.Writer) (Binaries, error) {
	dir := os.Getenv(EnvAssets)
	if dir != "" {
		for _, name := range []string{etcd, apiServer} {
			if !isExecutable(filepath.Join(dir, name)) {
				return Binaries{}, fmt.Errorf("%s=%s has no executable %s: install it there, or unset %s to have it built",
					EnvAssets, dir, name, EnvAssets)
			}
		}
		if isExecutable(filepath.Join(dir, controllerManager)) {
			return in(dir, dir), nil
		}
	}
	built, err := Build(ctx, progress, Servers)
	if err != nil {
		return Binaries{}, err
	}
	if dir == "" {
		dir = built
	}
	return in(dir, built), nil
}

func in(servers, managers string) Binaries {
	return Binaries{
		Etcd: filepath.Join(servers, etcd), APIServer: filepath.Join(servers, apiServer),
		ControllerManager: filepath.Join(managers, controllerManager),
	}
}

func isExecutable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// Root returns the folder of the checkout that contains the working directory.
func Root() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the checkout: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		_, err := os.Stat(filepath.Join(dir, "test", "assets", "doc.go"))
		if err == nil {
			return dir, nil
		}
		if !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("finding the checkout: %w", err)
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no test/assets in %s or above it: run from within a checkout of scute", start)
		}
	}
}
