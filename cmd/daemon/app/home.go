package app

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
	"scute.dev/internal/trust"
)

type home struct {
	log   *eventlog.Log
	where string
	// incarnation is a name of this process that differs at every start. Claims and commits contain
	// it.
	incarnation string
	// holder identifies this process in the Lease. previousHolders identify earlier processes that
	// used this folder and have ended. This process replaces such a holder without waiting until the
	// Lease expires.
	holder          string
	previousHolders []string
	// access authorizes clients of an embedded log's listener. If it is nil, there is no listener, or
	// every client is authorized.
	access *embedded.Access
}

const openTimeout = 2 * time.Minute

func openLog(ctx context.Context, o logOptions, logger *slog.Logger) (*home, error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("reading the host name: %w", err)
	}
	start := randomID()
	if o.URL != "" {
		log, err := eventlog.Connect(ctx, eventlog.ExternalOptions{
			URL: o.URL, CredsFile: o.Creds, TLS: eventlog.TLSFiles{CA: o.CA, Cert: o.Cert, Key: o.Key},
			Replicas: o.Replicas, MaxBytes: o.MaxBytes, Create: true, Logger: logger,
		})
		return &home{log: log, where: eventlog.RedactURL(o.URL), incarnation: host + "-" + start, holder: host + "-" + start}, err
	}
	var access *embedded.Access
	if o.Access != "" {
		access = &embedded.Access{Accept: checkAppend}
	} else if o.Listen != "" {
		logger.Warn("anybody who can reach the listener of the event log can read it and append to it: name the Secrets of its tokens with --log-access", "listen", o.Listen)
	}
	log, err := embedded.Open(ctx, embedded.Options{
		Dir: o.Dir, Listen: o.Listen, Access: access, MaxBytes: o.MaxBytes, Logger: logger,
	})
	if err != nil {
		return nil, err
	}
	id, err := identity(o.Dir)
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	h := &home{log: log, where: o.Dir, incarnation: id + "-" + start, holder: "log-" + id + "-" + start, access: access}
	if h.previousHolders, err = recordHolder(o.Dir, "log-"+id, h.holder); err != nil {
		logger.Warn("releasing the Lease failed; the next process waits until it has expired", "error", err)
	}
	return h, nil
}

// maxHolders is how many earlier holders of a folder are stored. More than one is needed, because
// the last process may not have held the Lease: a process that cannot reach the API server ends
// without requesting it.
const maxHolders = 100

// recordHolder appends this process to the list of processes that opened the log's folder, and
// returns the earlier processes. A random part makes each name unique, even in a copy of the
// folder. If there is no list yet, recordHolder returns unnamed, the name that an earlier version
// of scute would have used.
func recordHolder(dir, unnamed, holder string) (before []string, err error) {
	path := filepath.Join(dir, "holder")
	raw, err := os.ReadFile(path) //nolint:gosec // the operator's folder
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if before = strings.Fields(string(raw)); len(before) == 0 {
		before = []string{unnamed}
	}
	before = before[max(0, len(before)-maxHolders):]
	return before, os.WriteFile(path, []byte(strings.Join(append(before, holder), "\n")+"\n"), 0o600)
}

// identity returns the ID of a log's folder. The first process to open the folder creates it.
func identity(dir string) (string, error) {
	path := filepath.Join(dir, "identity")
	raw, err := os.ReadFile(path) //nolint:gosec // the operator's folder
	if id := strings.TrimSpace(string(raw)); err == nil && id != "" {
		return id, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("reading the log's identity: %w", err)
	}
	id := randomID()
	if err := os.WriteFile(path, []byte(id+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("writing the log's identity: %w", err)
	}
	return id, nil
}

func randomID() string {
	b := make([]byte, 4)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

func newLease(config *rest.Config, home *home, head func() uint64, held *tenure) (*lease, error) {
	clients, err := newClients(config, "leader-election")
	if err != nil {
		return nil, fmt.Errorf("preparing leader election: %w", err)
	}
	return &lease{
		client: clients.CoordinationV1().Leases(trust.LeaseNamespace), holder: home.holder, previousHolders: home.previousHolders, logID: home.log.ID(), installation: installation(), head: head,
		tenure: held,
	}, nil
}

// podNamespace returns the namespace of this process's pod. It fails if this process does not run
// in a pod.
func podNamespace() (string, error) {
	raw, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	return strings.TrimSpace(string(raw)), err
}

func installation() string {
	if namespace, err := podNamespace(); err == nil {
		return namespace
	}
	host, _ := os.Hostname() // openLog has returned the error
	return "none (a process on " + host + ")"
}
