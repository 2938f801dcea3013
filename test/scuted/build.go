package scuted

import (
	"context"
	"io"
	"path/filepath"

	"scute.dev/test/assets"
)

// Programs are the paths of the programs that the tests run.
type Programs struct {
	Daemon string
	// Faulty is the same daemon with fault points (test/cmd/faultd), if Build was called with it.
	Faulty string
	Ctl    string
	Chart  string
}

// Build builds scute's programs and the servers from the checkout, and the other given programs.
func Build(ctx context.Context, progress io.Writer, others ...assets.Program) (Programs, error) {
	bin, err := assets.Build(ctx, progress, append(others, assets.Daemon, assets.Ctl, assets.Servers)...)
	if err != nil {
		return Programs{}, err
	}
	root, err := assets.Root()
	if err != nil {
		return Programs{}, err
	}
	return Programs{
		Daemon: filepath.Join(bin, "scuted"), Faulty: filepath.Join(bin, "faultd"), Ctl: filepath.Join(bin, "scutectl"),
		Chart: filepath.Join(root, "charts", "scute"),
	}, nil
}
