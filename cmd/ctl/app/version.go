package app

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
)

// version is the version of this program.
type version struct {
	Version  string `json:"version"`
	Go       string `json:"goVersion"`
	Platform string `json:"platform"`
}

func versionOf(env *cli.Env) version {
	return version{Version: env.Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
}

// String returns the version as a line.
func (v version) String() string {
	return fmt.Sprintf("scutectl %s (%s, %s)", v.Version, v.Go, v.Platform)
}

func newCmdVersion(env *cli.Env) *cobra.Command {
	var format cli.Format
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if format.Data() {
				return format.Print(env.Out, versionOf(env))
			}
			return env.Linef("%v", versionOf(env))
		},
	}
	format.AddFlag(cmd, "json", "yaml", "jsonpath=...")
	return cmd
}
