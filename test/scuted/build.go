package scuted

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"scute.dev/test/assets"
)

// Programs are the paths of what the tests run.
type Programs struct {
	Daemon string
	// Faulty is the same daemon with fault points (test/cmd/faultd).
	Faulty string
	Ctl    string
	Helm   string
	Chart  string
}

// Build builds the programs from the checkout into its bin/test, and helm from the pinned tools if make has not done so. They
// do not lie with the servers in .testbed, which are the same for all checkouts and may be shared by them.
func Build(ctx context.Context, progress io.Writer) (Programs, error) {
	root, err := assets.Root()
	if err != nil {
		return Programs{}, err
	}
	bin := filepath.Join(root, "bin", "test")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return Programs{}, fmt.Errorf("making the folder for scute's programs: %w", err)
	}
	p := Programs{
		Daemon: filepath.Join(bin, "scuted"), Faulty: filepath.Join(bin, "faultd"), Ctl: filepath.Join(bin, "scutectl"),
		Helm: filepath.Join(root, "bin", "helm"), Chart: filepath.Join(root, "charts", "scute"),
	}
	builds := []struct{ module, output, pkg string }{
		{root, p.Daemon, "./cmd/daemon"},
		{root, p.Ctl, "./cmd/ctl"},
		{filepath.Join(root, "test"), p.Faulty, "./cmd/faultd"},
	}
	if _, err := os.Stat(p.Helm); err != nil {
		builds = append(builds, struct{ module, output, pkg string }{filepath.Join(root, "tools"), p.Helm, "helm.sh/helm/v4/cmd/helm"})
	}
	for _, b := range builds {
		started := time.Now()
		cmd := exec.CommandContext(ctx, "go", "build", "-o", b.output, b.pkg)
		cmd.Dir = b.module
		if out, err := cmd.CombinedOutput(); err != nil {
			return Programs{}, fmt.Errorf("building %s: %w\n%s", b.pkg, err, out)
		}
		if took := time.Since(started); took > 5*time.Second {
			fmt.Fprintf(progress, "built %s in %s\n", filepath.Base(b.output), took.Round(time.Second))
		}
	}
	return p, nil
}
