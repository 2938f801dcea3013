package connect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sort"
	"time"

	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
)

// Log is an open event log.
type Log struct {
	*eventlog.Log
	Where string
	// Static is true if this process has locked the folder of the log, so that no other process
	// appends to it.
	Static bool

	end  uint64 // last commit to read; 0 means all
	stop func()
}

// Close closes the connection.
func (l *Log) Close() error {
	err := l.Log.Close()
	if l.stop != nil {
		l.stop()
	}
	return err
}

// Log opens for reading the log that the flags name, by default the log of the daemon. It writes
// warnings to w.
func (f *Flags) Log(ctx context.Context, w io.Writer) (*Log, error) {
	return f.logAs(ctx, embedded.Reader, w)
}

// LogToAppend works like Log, but opens the log for appending.
func (f *Flags) LogToAppend(ctx context.Context, w io.Writer) (*Log, error) {
	return f.logAs(ctx, embedded.Operator, w)
}

func (f *Flags) logAs(ctx context.Context, role embedded.Role, w io.Writer) (*Log, error) {
	ctx, cancel := context.WithTimeout(ctx, f.LogTimeout)
	defer cancel()
	logger := Logger(w)
	switch {
	case f.Dir != "":
		return f.folder(ctx, logger)
	case f.URL != "":
		log, err := f.connect(ctx, f.External(logger), nil)
		if err != nil {
			return nil, err
		}
		return &Log{Log: log, Where: eventlog.RedactURL(f.URL)}, nil
	default:
		return f.inCluster(ctx, role, logger)
	}
}

// folder opens the log of a stopped daemon or of local runs. If a local run has the log open,
// folder connects to the process of that run.
func (f *Flags) folder(ctx context.Context, logger *slog.Logger) (*Log, error) {
	if err := f.CheckExists(); err != nil {
		return nil, err
	}
	log, err := f.open(ctx, logger)
	if errors.Is(err, eventlog.ErrLocked) {
		if log, err := f.join(ctx, logger); err == nil {
			return log, nil
		}
		return nil, fmt.Errorf("%w: %s", err, f.BusyHint())
	}
	return log, err
}

// BusyHint describes how to read the log of a folder that another process has open.
func (f *Flags) BusyHint() string {
	if f.Local {
		return "wait until that process ends, and try again; if it is a daemon, read its log through the cluster (leave out --local)"
	}
	return "a daemon has this log open: read it through the cluster (leave out --log), or with --nats if the daemon listens"
}

// CheckExists returns an error if the folder has no log, because opening it would create one.
func (f *Flags) CheckExists() error {
	if info, err := os.Stat(filepath.Join(f.Dir, "jetstream")); err != nil || !info.IsDir() {
		if f.Local && f.Dir == LocalDir {
			return fmt.Errorf("no local run was started in this folder: it has no log in %s; change to the folder of a local run, or name the log's folder with --log", LocalDir)
		}
		return fmt.Errorf("%s is not the folder of an event log: use the folder of the daemon's --log-dir, or of a local run's --log", f.Dir)
	}
	return nil
}

// External returns the address and the credentials of the NATS server with the log.
func (f *Flags) External(logger *slog.Logger) eventlog.ExternalOptions {
	return eventlog.ExternalOptions{URL: f.URL, CredsFile: f.Creds, TLS: eventlog.TLSFiles{CA: f.CA, Cert: f.Cert, Key: f.Key}, Logger: logger}
}

// open opens the log in the folder. With Examine it opens a copy of the folder.
func (f *Flags) open(ctx context.Context, logger *slog.Logger) (*Log, error) {
	if !f.Examine {
		log, err := embedded.Open(ctx, embedded.Options{Dir: f.Dir, Logger: logger})
		return &Log{Log: log, Where: f.Dir, Static: true}, err
	}
	dir, err := os.MkdirTemp("", "scute-examine-*")
	if err != nil {
		return nil, fmt.Errorf("copying the event log: %w", err)
	}
	var log *eventlog.Log
	if err = embedded.CopyFolder(f.Dir, dir); err == nil {
		log, err = embedded.Open(ctx, embedded.Options{Dir: dir, AllowDamaged: true, Logger: logger})
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &Log{Log: log, Where: f.Dir, Static: true, stop: func() { _ = os.RemoveAll(dir) }}, nil
}

// connect connects to a log on a server. If p is not nil, it presents the token that p reads.
func (f *Flags) connect(ctx context.Context, o eventlog.ExternalOptions, p *tokenSource) (*eventlog.Log, error) {
	o.AllowDamaged = f.Examine
	if p != nil {
		o.TokenFrom = p.refresh
	}
	log, err := eventlog.Connect(ctx, o)
	for until := time.Now().Add(tokenGracePeriod); p != nil && errors.Is(err, eventlog.ErrDenied) && ctx.Err() == nil && time.Now().Before(until); {
		time.Sleep(retryInterval)
		log, err = eventlog.Connect(ctx, o)
	}
	switch {
	case p != nil && errors.Is(err, eventlog.ErrDenied):
		return nil, fmt.Errorf("%w: the daemon rejects the token of Secret %s/%s: check the daemon's log lines", err, p.secrets.Namespace, p.secrets.NameFor(p.role))
	case p == nil && errors.Is(err, eventlog.ErrUnavailable):
		return nil, f.ExplainConnect(err)
	case errors.Is(err, eventlog.ErrMissing):
		return nil, fmt.Errorf("%w: no daemon has written there yet", err)
	}
	return log, err
}

// Logger returns a logger for warnings about a log.
func Logger(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey) { // an operator does not need them in live output
			return slog.Attr{}
		}
		return a
	}}))
}

var errEnd = errors.New("the log is not read any further")

// SetEnd omits all commits after seq from later reads.
func (l *Log) SetEnd(seq uint64) { l.end = seq }

// Read reads commits of an aggregate. It stops at the end that SetEnd set.
func (l *Log) Read(ctx context.Context, a eventlog.Aggregate, after uint64) ([]eventlog.Record, error) {
	records, err := l.Log.Read(ctx, a, after)
	if err != nil || l.end == 0 {
		return records, err
	}
	later := sort.Search(len(records), func(i int) bool { return records[i].Seq > l.end })
	return records[:later], nil
}

// Replay replays the log. It stops at the end that SetEnd set.
func (l *Log) Replay(ctx context.Context, after uint64, fn func(eventlog.Record) error) (uint64, error) {
	if l.end == 0 {
		return l.Log.Replay(ctx, after, fn)
	}
	head, err := l.Log.Replay(ctx, after, func(r eventlog.Record) error {
		if r.Seq > l.end {
			return errEnd
		}
		return fn(r)
	})
	if errors.Is(err, errEnd) {
		return l.end, nil
	}
	return head, err
}

// Last returns the last commit that was stored at or before a time. It fails if there is none.
func (l *Log) Last(ctx context.Context, t time.Time) (eventlog.Record, error) {
	last, err := l.Until(ctx, t)
	if err == nil && last.Seq == 0 {
		err = fmt.Errorf("the log at %s has no commit from %s or earlier", l.Where, t.UTC().Format(time.RFC3339))
	}
	return last, err
}

// Until works like Last, but returns sequence 0 if there is no such commit. It uses a binary
// search: a log of 1,000,000 commits needs about 20 requests.
func (l *Log) Until(ctx context.Context, t time.Time) (last eventlog.Record, err error) {
	head, err := l.Head(ctx)
	if err != nil {
		return eventlog.Record{}, err
	}
	for first, after := uint64(1), head+1; first < after; {
		middle := first + (after-first)/2
		r, err := l.At(ctx, middle)
		switch {
		case err != nil:
			return eventlog.Record{}, err
		case r.Stored.After(t):
			after = middle
		default:
			last, first = r, middle+1
		}
	}
	return last, nil
}
