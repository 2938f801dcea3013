package testbed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"scute.dev/test/assets"
	"scute.dev/test/cloud"
	"scute.dev/test/ports"
	"scute.dev/test/process"
)

// EnvKeep is an environment variable. If it is set, the folder of a test bed is kept when the bed stops.
const EnvKeep = "SCUTE_TESTBED_KEEP"

// Options are the options of a test bed. The zero value starts two management clusters, "blue" and "green".
type Options struct {
	// Sides are the names of the management clusters.
	Sides []string
	// Bare starts no Cluster API controllers and webhooks: its kinds are served, but have no controllers.
	Bare bool
	// RateLimited keeps Cluster API's default limit of one reconcile per object and second. Without it the same happens
	// in the same order, three times faster. The feature gate also makes Cluster API wait until its cache has its own
	// writes. Without that, a control plane may create several machines instead of one after its API server was down.
	RateLimited bool
	// Audit makes each API server write its audit log, one line per request.
	Audit bool
	// Admission are additional admission plugins of the API servers.
	Admission []string
	// Log receives a few lines of progress. Nil means standard error.
	Log io.Writer
}

// Bed is a running test bed.
type Bed struct {
	opts    Options
	folder  *process.Folder
	ports   *ports.Block
	modules assets.Modules
	cloud   *cloud.Cloud
	sides   []*Side

	restoreLogs func()
	stop        sync.Once
	keep        bool
	err         error // the result of Stop
}

// Start runs a test bed. It builds the server binaries first if they were never built, so ctx should then allow ten
// minutes. ctx is for the start only; the bed runs until Stop. No process, port or folder of the bed outlives this
// process, however it ends. Start replaces the process-wide loggers of klog and controller-runtime.
func Start(ctx context.Context, opts Options) (*Bed, error) {
	if len(opts.Sides) == 0 {
		opts.Sides = []string{"blue", "green"}
	}
	if opts.Log == nil {
		opts.Log = os.Stderr
	}
	b := &Bed{opts: opts, keep: os.Getenv(EnvKeep) != ""}
	started := time.Now()
	if err := b.start(ctx); err != nil {
		if !errors.Is(ctx.Err(), context.Canceled) { // an interrupted start needs no logs
			b.Keep()
		}
		return nil, fmt.Errorf("starting the test bed: %w", errors.Join(err, b.Stop()))
	}
	b.logf("%s ready in %s, logs in %s", strings.Join(opts.Sides, " and "), time.Since(started).Round(100*time.Millisecond), b.Logs())
	return b, nil
}

func (b *Bed) start(ctx context.Context) error {
	binaries, err := assets.Find(ctx, b.opts.Log)
	if err != nil {
		return err
	}
	if b.modules, err = assets.FindModules(ctx); err != nil {
		return err
	}
	if b.folder, err = process.NewFolder("scute-testbed-"); err != nil {
		return err
	}
	if b.ports, err = ports.Reserve(); err != nil {
		return err
	}
	if b.restoreLogs, err = redirectLogs(filepath.Join(b.folder.Path, "process.log")); err != nil {
		return err
	}
	for _, name := range b.opts.Sides {
		s, err := newSide(b, name)
		if err != nil {
			return err
		}
		b.sides = append(b.sides, s)
	}
	if err := b.eachSide(func(s *Side) error { return s.startAPI(ctx, binaries) }); err != nil {
		return err
	}
	if b.cloud, err = cloud.Start(ctx, b.ports); err != nil {
		return err
	}
	return b.eachSide(func(s *Side) error { return s.startStack(ctx) })
}

// Side returns the management cluster with that name. It panics if Options.Sides does not contain it.
func (b *Bed) Side(name string) *Side {
	for _, s := range b.sides {
		if s.name == name {
			return s
		}
	}
	panic(fmt.Sprintf("test bed: no side %q among %v", name, b.opts.Sides))
}

// Sides returns all management clusters.
func (b *Bed) Sides() []*Side { return slices.Clone(b.sides) }

// Cloud returns the shared infrastructure of all sides.
func (b *Bed) Cloud() *cloud.Cloud { return b.cloud }

// Logs returns the folder with the logs of all components, by side.
func (b *Bed) Logs() string {
	if b.folder == nil {
		return ""
	}
	return b.folder.Path
}

// Keep keeps the folder with the logs when the bed stops. The bed then prints its path.
func (b *Bed) Keep() { b.keep = true }

// Stop stops everything and removes the folder, unless Keep was called. Further calls do nothing.
func (b *Bed) Stop() error {
	b.stop.Do(func() { b.err = b.shutdown() })
	return b.err
}

func (b *Bed) shutdown() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	errs := []error{b.eachSide(func(s *Side) error { return s.StopControllers() })}
	if b.cloud != nil {
		errs = append(errs, b.cloud.Stop(ctx))
	}
	errs = append(errs, b.eachSide(func(s *Side) error { return s.stopAPI(ctx) }))
	if b.ports != nil {
		errs = append(errs, b.ports.Release())
	}
	if b.restoreLogs != nil {
		b.restoreLogs()
	}
	if b.folder != nil {
		errs = append(errs, b.folder.Close(b.keep))
		if b.keep {
			b.logf("logs kept in %s", b.folder.Path)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("stopping the test bed: %w", err)
	}
	return nil
}

// eachSide calls a function for all sides concurrently.
func (b *Bed) eachSide(do func(*Side) error) error {
	var group errgroup.Group
	for _, s := range b.sides {
		group.Go(func() error { return do(s) })
	}
	return group.Wait()
}

func (b *Bed) logf(format string, args ...any) {
	fmt.Fprintf(b.opts.Log, "test bed: "+format+"\n", args...)
}
