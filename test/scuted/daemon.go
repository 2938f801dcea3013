package scuted

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/internal/trust"
	"scute.dev/test/process"
)

// Daemon is a running scuted.
type Daemon struct {
	*process.Process
	health string
}

// DaemonOptions are the options of a daemon. The zero value of a field leaves that flag out.
type DaemonOptions struct {
	// LogDir is the folder of the embedded log. It outlives the daemon.
	LogDir string
	// Listen, Health and Metrics are the addresses of the log, of the probes and of the metrics.
	Listen, Health, Metrics string
	// Program is another binary with the same flags.
	Program string
	Args    []string
	// Env is added to the environment.
	Env []string
}

// Start runs the daemon with the chart's ServiceAccount. It does not wait until it is ready: see WaitReady.
func (in *Installation) Start(o DaemonOptions) (*Daemon, error) {
	program := o.Program
	if program == "" {
		program = in.programs.Daemon
	}
	health, metrics := cmp.Or(o.Health, "0"), cmp.Or(o.Metrics, "0")
	args := []string{
		"--kubeconfig", in.Kubeconfig, "--log-dir", o.LogDir, "--log-format", "text",
		"--metrics-address", metrics, "--health-address", health, "--allow-addresses", "127.0.0.1", // the address of all sides of the test bed
	}
	if o.Listen != "" {
		args = append(args, "--log-listen", o.Listen)
	}
	p, err := process.Start(process.Spec{Path: program, Args: append(args, o.Args...), Env: o.Env, Log: filepath.Join(in.Side.Logs(), "scuted.log")})
	if err != nil {
		return nil, err
	}
	return &Daemon{Process: p, health: o.Health}, nil
}

// WaitReady waits until the daemon is ready.
func (d *Daemon) WaitReady(ctx context.Context) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := d.Exited(); err != nil {
			return err
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.health+"/readyz", nil)
		if err != nil {
			return err
		}
		if response, err := http.DefaultClient.Do(request); err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for scuted to be ready: %w: see %s", ctx.Err(), d.Log())
		case <-tick.C:
		}
	}
}

// Stop sends SIGTERM to the daemon and waits until it exits.
func (d *Daemon) Stop(ctx context.Context) error {
	select {
	case <-d.Done():
		return nil
	default:
	}
	// The daemon may just have exited, for example at a fault point.
	if err := syscall.Kill(d.PID(), syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("stopping scuted: %w", err)
	}
	select {
	case <-d.Done():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for scuted to stop: %w: see %s", ctx.Err(), d.Log())
	}
}

// NewLogDir creates a folder for a new embedded log next to the side's own logs, and deletes the high-water mark of the
// previous log.
func (in *Installation) NewLogDir() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), forgetTimeout)
	defer cancel()
	if err := in.ForgetLog(ctx); err != nil {
		return "", err
	}
	return os.MkdirTemp(in.Side.Logs(), "eventlog-")
}

const forgetTimeout = 20 * time.Second

// ForgetLog deletes the Lease with the high-water mark of the last active log, so that another log may become active.
func (in *Installation) ForgetLog(ctx context.Context) error {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: trust.LeaseNamespace, Name: trust.LeaseName}}
	if err := client.IgnoreNotFound(in.Side.Client().Delete(ctx, lease)); err != nil {
		return fmt.Errorf("removing the Lease: %w", err)
	}
	return nil
}
