package assets

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// Program is a main package that is built into bin/test of the checkout.
type Program struct {
	pkg    string
	module string   // the folder below test/ whose go.mod pins the program; empty for test/ itself
	names  []string // the names of its links, if they differ from the name of its binary
}

// The programs that the test bed and the suites run. One go command builds the programs of a
// module, and so compiles each shared package once.
var (
	Daemon    = Program{pkg: "scute.dev/cmd/daemon", names: []string{"scuted"}}
	Ctl       = Program{pkg: "scute.dev/cmd/ctl", names: []string{"scutectl"}}
	Faulty    = Program{pkg: "scute.dev/test/cmd/faultd"}
	FaultyCtl = Program{pkg: "scute.dev/test/cmd/faultctl"}
	Driver    = Program{pkg: "scute.dev/test/named/driver"}
	Demo      = Program{pkg: "scute.dev/test/cmd/demo"}
	Servers   = Program{pkg: "scute.dev/test/cmd/controlplane", names: []string{etcd, apiServer, controllerManager}}
	Store     = Program{pkg: "github.com/versity/versitygw/cmd/versitygw", module: "thirdparty"}
)

const kubernetes = "k8s.io/kubernetes"

// binary returns the name of the file that go build writes for the program.
func (p Program) binary() string {
	return path.Base(p.pkg)
}

// Build builds the programs that are out of date, and returns their folder. With an empty build
// cache it takes minutes, and writes to progress how far it is. Several processes may call it at
// the same time.
func Build(ctx context.Context, progress io.Writer, programs ...Program) (folder string, err error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	folder = filepath.Join(root, "bin", "test")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("creating the folder for the programs of the tests: %w", err)
	}
	unlock, err := lock(ctx, filepath.Join(folder, ".lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	byModule := map[string][]Program{}
	var modules []string
	for _, p := range programs {
		if byModule[p.module] == nil {
			modules = append(modules, p.module)
		}
		byModule[p.module] = append(byModule[p.module], p)
	}
	for _, module := range modules {
		if err := build(ctx, progress, filepath.Join(root, "test", module), folder, byModule[module]); err != nil {
			return "", err
		}
	}
	for _, p := range programs {
		if err := link(folder, p); err != nil {
			return "", err
		}
	}
	return folder, nil
}

// build runs one go command for the programs of one module. It compiles with the same flags as the
// Makefile, so that both share the build cache.
func build(ctx context.Context, progress io.Writer, source, folder string, programs []Program) error {
	versions, err := requiredVersions(filepath.Join(source, "go.mod"))
	if err != nil {
		return err
	}
	args := []string{"build", "-v", "-buildvcs=false", "-gcflags=all=-dwarf=false -c=1", "-ldflags", "-s -w"}
	if version := versions[kubernetes]; version != "" {
		args = append(args, "-ldflags", Servers.pkg+"=-s -w "+stamp(version))
	}
	args = append(args, "-o", folder+string(filepath.Separator))
	var packages []string
	for _, p := range programs {
		packages = append(packages, p.pkg)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, packages...)...)
	cmd.Dir, cmd.Env = source, environment()
	watch := newProgress(progress, source, packages)
	cmd.Stdout, cmd.Stderr = watch, watch
	err = cmd.Run()
	complaint := watch.close()
	if err != nil {
		return fmt.Errorf("building %s in %s: %w\n%s", strings.Join(packages, ", "), source, err, complaint)
	}
	return nil
}

// environment returns the environment of go commands: static binaries, no C compiler, no GOFLAGS of
// the caller, and fewer garbage collections in the compiler.
func environment() []string {
	return append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=", "GOGC=200")
}

// link creates a symbolic link to the program for each of its names.
func link(folder string, p Program) error {
	for _, name := range p.names {
		at := filepath.Join(folder, name)
		if target, err := os.Readlink(at); err == nil && target == p.binary() {
			continue
		}
		if err := os.RemoveAll(at); err != nil {
			return fmt.Errorf("linking %s: %w", name, err)
		}
		if err := os.Symlink(p.binary(), at); err != nil {
			return fmt.Errorf("linking %s: %w", name, err)
		}
	}
	return nil
}

// stamp returns the linker flags that set the version of Kubernetes. Cluster API refuses an API
// server without a version.
func stamp(version string) string {
	major, minor, _ := strings.Cut(strings.TrimPrefix(semver.MajorMinor(version), "v"), ".")
	return fmt.Sprintf("-X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=%[3]s -X %[1]s.gitMinor=%[4]s",
		"k8s.io/component-base/version", version, major, minor)
}

func requiredVersions(path string) (map[string]string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the versions of the programs: %w", err)
	}
	file, err := modfile.Parse(path, content, nil)
	if err != nil {
		return nil, fmt.Errorf("reading the versions of the programs: %w", err)
	}
	versions := map[string]string{}
	for _, r := range file.Require {
		versions[r.Mod.Path] = r.Mod.Version
	}
	return versions, nil
}

// lock acquires the advisory lock on path, so that no two processes write the same program at once.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("locking the programs of the tests: %w", err)
	}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("waiting for another process to build the programs of the tests (lock %s): %w", path, ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}
