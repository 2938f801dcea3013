package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

// Run starts a test bed, runs the tests of a package, and returns the exit code of the package. Starting a bed is what costs, so all
// tests share it: prepare gets it before the first one. After a failure the bed's logs stay.
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
	return m.Run()
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

// Install builds scute's programs and installs the chart, with values, on the sides blue and green of a bed.
func Install(ctx context.Context, bed *testbed.Bed, values ...string) (programs scuted.Programs, blue, green *scuted.Installation, err error) {
	if programs, err = scuted.Build(ctx, os.Stderr); err != nil {
		return programs, nil, nil, err
	}
	if blue, err = scuted.Install(ctx, bed.Side("blue"), programs, values...); err == nil {
		green, err = scuted.Install(ctx, bed.Side("green"), programs, values...)
	}
	return programs, blue, green, err
}
