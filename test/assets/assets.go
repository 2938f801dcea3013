package assets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// EnvAssets names the folder of ready-made binaries that controller-runtime's envtest uses too.
const EnvAssets = "KUBEBUILDER_ASSETS"

// Binaries are the absolute paths of the server programs.
type Binaries struct {
	Etcd              string
	APIServer         string
	ControllerManager string
}

// Find returns the binaries. Where KUBEBUILDER_ASSETS is set, etcd and kube-apiserver must lie there, and
// kube-controller-manager is taken from there if present. Everything else is built if it was not built before, which
// takes minutes; what is built, and for how long, is told on progress. Safe to call from several processes at once.
func Find(ctx context.Context, progress io.Writer) (Binaries, error) {
	if dir := os.Getenv(EnvAssets); dir != "" {
		return fromEnvironment(ctx, dir, progress)
	}
	return built(ctx, progress, etcd, apiServer, controllerManager)
}

func fromEnvironment(ctx context.Context, dir string, progress io.Writer) (Binaries, error) {
	b := Binaries{Etcd: filepath.Join(dir, etcd.name), APIServer: filepath.Join(dir, apiServer.name)}
	for _, p := range []string{b.Etcd, b.APIServer} {
		if !isExecutable(p) {
			return Binaries{}, fmt.Errorf("%s=%s holds no executable %s: install it there, or unset %s to have it built",
				EnvAssets, dir, filepath.Base(p), EnvAssets)
		}
	}
	if p := filepath.Join(dir, controllerManager.name); isExecutable(p) {
		b.ControllerManager = p
		return b, nil
	}
	own, err := built(ctx, progress, controllerManager)
	if err != nil {
		return Binaries{}, err
	}
	b.ControllerManager = own.ControllerManager
	return b, nil
}

func isExecutable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// Root returns the folder of the checkout that the working directory belongs to.
func Root() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the checkout: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		_, err := os.Stat(filepath.Join(dir, "test", "binaries", "go.mod"))
		if err == nil {
			return dir, nil
		}
		if !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("finding the checkout: %w", err)
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no test/binaries/go.mod in %s or above it: run from within a checkout of scute", start)
		}
	}
}
