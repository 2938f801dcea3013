package connect

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
	"scute.dev/internal/atomicfile"
)

// endpointFile is the file in a log's folder through which other processes of the owner reach the
// log. Only the owner may read it.
const endpointFile = "endpoint.json"

type endpoint struct {
	URL   string `json:"url"`
	Token string `json:"token"`
}

// Serve opens the log in the folder that the flags name, and creates it if it does not exist. Other
// scutectl processes of the same user can then connect to this process, so that operators can
// decide about a run while this command drives the run.
func (f *Flags) Serve(ctx context.Context, w io.Writer) (*Log, error) {
	ctx, cancel := context.WithTimeout(ctx, f.LogTimeout)
	defer cancel()
	d := endpoint{Token: rand.Text()}
	log, err := embedded.Open(ctx, embedded.Options{Dir: f.Dir, Listen: "127.0.0.1:0", Token: d.Token, Logger: Logger(w)})
	if errors.Is(err, eventlog.ErrLocked) {
		return nil, fmt.Errorf("another process drives runs in %s: wait until it ends (meanwhile you can watch its runs and decide about them), "+
			"or use another folder for this run with --log: %w", f.Dir, err)
	}
	if err != nil {
		return nil, err
	}
	d.URL = log.URL()
	path := filepath.Join(f.Dir, endpointFile)
	data, err := json.Marshal(d)
	if err == nil {
		err = atomicfile.WriteBytes(path, data) // atomic, so that a reader never sees a part
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("writing the address of the log: %w", err), log.Close())
	}
	return &Log{Log: log, Where: f.Dir, Static: true, stop: func() { _ = os.Remove(path) }}, nil
}

func (f *Flags) endpoint() (d endpoint, err error) {
	data, err := os.ReadFile(filepath.Join(f.Dir, endpointFile))
	if err != nil {
		return d, err
	}
	return d, json.Unmarshal(data, &d)
}

// join connects to the log through the process that has the folder open.
func (f *Flags) join(ctx context.Context, logger *slog.Logger) (*Log, error) {
	d, err := f.endpoint()
	if err != nil {
		return nil, err
	}
	log, err := eventlog.Connect(ctx, eventlog.ExternalOptions{URL: d.URL, Token: d.Token, Logger: logger})
	if err != nil {
		return nil, err
	}
	return &Log{Log: log, Where: f.Dir}, nil
}
