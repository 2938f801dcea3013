package assets

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// program is one binary, built from a package of a Go module that test/binaries/go.mod requires.
type program struct {
	name, pkg, module string
}

const kubernetes = "k8s.io/kubernetes"

var (
	etcd              = program{name: "etcd", pkg: "go.etcd.io/etcd/server/v3", module: "go.etcd.io/etcd/server/v3"}
	apiServer         = program{name: "kube-apiserver", pkg: kubernetes + "/cmd/kube-apiserver", module: kubernetes}
	controllerManager = program{name: "kube-controller-manager", pkg: kubernetes + "/cmd/kube-controller-manager", module: kubernetes}
)

// built returns the wanted programs from the folder of this version, after building those that are not there yet.
func built(ctx context.Context, progress io.Writer, wanted ...program) (Binaries, error) {
	root, err := Root()
	if err != nil {
		return Binaries{}, err
	}
	source := filepath.Join(root, "test", "binaries")
	versions, err := requiredVersions(filepath.Join(source, "go.mod"))
	if err != nil {
		return Binaries{}, err
	}
	key := fmt.Sprintf("kubernetes-%s-etcd-%s-%s-%s", versions[kubernetes], versions[etcd.module], runtime.GOOS, runtime.GOARCH)
	target := filepath.Join(root, ".testbed", "bin", key)
	if err := os.MkdirAll(target, 0o755); err != nil {
		return Binaries{}, fmt.Errorf("building test bed binaries: %w", err)
	}
	unlock, err := lock(ctx, filepath.Join(target, ".lock"))
	if err != nil {
		return Binaries{}, err
	}
	defer unlock()
	for _, p := range wanted {
		if isExecutable(filepath.Join(target, p.name)) {
			continue
		}
		if err := build(ctx, progress, source, target, p, versions[p.module]); err != nil {
			return Binaries{}, err
		}
	}
	return Binaries{
		Etcd:              filepath.Join(target, etcd.name),
		APIServer:         filepath.Join(target, apiServer.name),
		ControllerManager: filepath.Join(target, controllerManager.name),
	}, nil
}

func build(ctx context.Context, progress io.Writer, source, target string, p program, version string) error {
	started := time.Now()
	fmt.Fprintf(progress, "test bed: building %s %s from its Go module (once; minutes on a cold cache)\n", p.name, version)
	clock := time.NewTicker(15 * time.Second)
	defer clock.Stop()

	unfinished := filepath.Join(target, fmt.Sprintf(".%s.%d", p.name, os.Getpid()))
	defer os.Remove(unfinished)
	cmd := exec.CommandContext(ctx, "go", "build", "-mod=readonly", "-trimpath", "-ldflags", ldflags(p, version), "-o", unfinished, p.pkg)
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	done := make(chan error, 1)
	go func() { done <- cmd.Run() }()
	for {
		select {
		case err := <-done:
			if err != nil {
				return fmt.Errorf("building %s %s in %s: %w\n%s", p.name, version, source, err, bytes.TrimSpace(output.Bytes()))
			}
			if err := os.Rename(unfinished, filepath.Join(target, p.name)); err != nil {
				return fmt.Errorf("building %s: %w", p.name, err)
			}
			fmt.Fprintf(progress, "test bed: built %s in %s\n", p.name, time.Since(started).Round(time.Second))
			return nil
		case <-clock.C:
			fmt.Fprintf(progress, "test bed: building %s ... %s\n", p.name, time.Since(started).Round(time.Second))
		}
	}
}

// ldflags stamps the version: Cluster API refuses to work with a server that does not know its own.
func ldflags(p program, version string) string {
	flags := "-s -w"
	if p.module != kubernetes {
		return flags
	}
	major, minor, _ := strings.Cut(strings.TrimPrefix(semver.MajorMinor(version), "v"), ".")
	for name, value := range map[string]string{"gitVersion": version, "gitMajor": major, "gitMinor": minor} {
		flags += fmt.Sprintf(" -X k8s.io/component-base/version.%s=%s", name, value)
	}
	return flags
}

func requiredVersions(path string) (map[string]string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the versions of the test bed binaries: %w", err)
	}
	file, err := modfile.Parse(path, content, nil)
	if err != nil {
		return nil, fmt.Errorf("reading the versions of the test bed binaries: %w", err)
	}
	versions := map[string]string{}
	for _, r := range file.Require {
		versions[r.Mod.Path] = r.Mod.Version
	}
	return versions, nil
}

// lock takes the advisory lock on path, so that two processes never build the same program at once.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("locking the test bed binaries: %w", err)
	}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("waiting for another process to build the test bed binaries (lock %s): %w", path, ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}
