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

// endpointFile says, in the folder of a log, how the process can be reached that has it open. Only its owner may read it.
const endpointFile = "endpoint.json"

// endpoint is a port of this machine and the word that opens it.
type endpoint struct {
	URL   string `json:"url"`
	Token string `json:"token"`
}

// Serve opens the log in the folder that the flags name, makes one there if there is none, and lets other scutectl of the
// same user at it: who drives a run must not keep others from deciding about it.
func (f *Flags) Serve(ctx context.Context, w io.Writer) (*Log, error) {
	ctx, cancel := context.WithTimeout(ctx, f.LogTimeout)
	defer cancel()
	d := endpoint{Token: rand.Text()}
	log, err := embedded.Open(ctx, embedded.Options{Dir: f.Dir, Stream: f.Stream, Listen: "127.0.0.1:0", Token: d.Token, Logger: Logger(w)})
	if errors.Is(err, eventlog.ErrLocked) {
		return nil, fmt.Errorf("another process drives runs in %s: wait until it ends, decide about its runs and watch them meanwhile, "+
			"or give this run another folder with --log: %w", f.Dir, err)
	}
	if err != nil {
		return nil, err
	}
	d.URL = log.URL()
	path := filepath.Join(f.Dir, endpointFile)
	if err := d.write(path); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return &Log{Log: log, Where: f.Dir, Static: true, stop: func() { _ = os.Remove(path) }}, nil
}

// write puts the endpoint in place as a whole: who reads it sees all of it, or that of a process that is gone.
func (d endpoint) write(path string) error {
	data, err := json.Marshal(d)
	if err != nil {
		return err
	}
	if err := atomicfile.WriteBytes(path, data); err != nil {
		return fmt.Errorf("writing how the log can be reached: %w", err)
	}
	return nil
}

// endpoint reads how the process can be reached that has the folder open.
func (f *Flags) endpoint() (d endpoint, err error) {
	data, err := os.ReadFile(filepath.Join(f.Dir, endpointFile))
	if err != nil {
		return d, err
	}
	return d, json.Unmarshal(data, &d)
}

// join reaches the log through the process that has it open.
func (f *Flags) join(ctx context.Context, logger *slog.Logger) (*Log, error) {
	d, err := f.endpoint()
	if err != nil {
		return nil, err
	}
	log, err := eventlog.Connect(ctx, eventlog.ExternalOptions{URL: d.URL, Token: d.Token, Stream: f.Stream, Logger: logger})
	if err != nil {
		return nil, err
	}
	return &Log{Log: log, Where: f.Dir}, nil
}
