package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"

	"k8s.io/client-go/rest"

	"scute.dev/test/assets"
	"scute.dev/test/leak"
	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

// Run starts a test bed, runs the tests of a package, and returns the exit code. All tests share the bed, because
// starting one is expensive. prepare is called before the first test. After a failure the bed's logs are kept. At the
// end, everything that daemons wrote is searched for the content of every Secret in the clusters. A finding fails the
// package.
func Run(m *testing.M, name string, options testbed.Options, prepare func(context.Context, *testbed.Bed) error) (code int) {
	bed, err := start(options, prepare)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 1
	}
	defer func() {
		if code != 0 {
			bed.Keep()
		}
		if err := bed.Stop(); err != nil {
			fmt.Fprintf(os.Stderr, "%s: stopping the test bed: %v\n", name, err)
			code = 1
		}
	}()
	secrets, stop, err := watchSecrets(bed)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 1
	}
	code = m.Run()
	stop()
	if leaked := told(os.Stderr, name, secrets, bed.Logs()); code == 0 && leaked {
		code = 1
	}
	return code
}

// watchSecrets collects all Secrets in the clusters of a bed.
func watchSecrets(bed *testbed.Bed) (secrets *leak.Material, stop func(), err error) {
	var configs []*rest.Config
	for _, side := range bed.Sides() {
		configs = append(configs, side.Config())
	}
	secrets = &leak.Material{}
	stop, err = secrets.Watch(configs...)
	return secrets, stop, err
}

// told reports whether the output of daemons in a folder has secrets, and prints where.
func told(w io.Writer, name string, secrets *leak.Material, folder string) bool {
	findings, read, err := secrets.Scan(folder)
	for _, f := range findings {
		fmt.Fprintf(w, "%s: a secret is told: %s\n", name, f)
	}
	if err != nil {
		fmt.Fprintf(w, "%s: %v\n", name, err)
	}
	fmt.Fprintf(w, "%s: %d bytes of event logs and of lines of daemons were searched for %d versions of Secrets: %d findings\n", name, read, secrets.Secrets(), len(findings))
	return err != nil || len(findings) > 0
}

func start(options testbed.Options, prepare func(context.Context, *testbed.Bed) error) (*testbed.Bed, error) {
	ctx, cancel := context.WithTimeout(context.Background(), testbed.StartTimeout)
	defer cancel()
	bed, err := testbed.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	if err := prepare(ctx, bed); err != nil {
		bed.Keep()
		return nil, errors.Join(err, bed.Stop())
	}
	return bed, nil
}

// Install builds scute's programs, including the daemon with fault points, and installs the chart with values on the
// sides blue and green of a bed.
func Install(ctx context.Context, bed *testbed.Bed, values ...string) (programs scuted.Programs, blue, green *scuted.Installation, err error) {
	if programs, err = scuted.Build(ctx, os.Stderr, assets.Faulty); err != nil {
		return programs, nil, nil, err
	}
	if blue, err = scuted.Install(ctx, bed.Side("blue"), programs, values...); err == nil {
		green, err = scuted.Install(ctx, bed.Side("green"), programs, values...)
	}
	return programs, blue, green, err
}
