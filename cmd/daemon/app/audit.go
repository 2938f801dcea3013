package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"scute.dev/eventlog/seal"
	"scute.dev/evidence"
	"scute.dev/view"
)

const (
	finalSealTimeout = 5 * time.Second
	witnessTimeout   = 10 * time.Second
	// keyRetryInterval is the interval between attempts to open the signing key and the seals.
	keyRetryInterval = 10 * time.Second
)

type auditOptions struct {
	// Key is the Secret with the signing key, NAMESPACE/NAME. If it is empty, the log is not sealed.
	Key string
	// ConfigMap (NAMESPACE/NAME), Folder and Witness receive the checkpoints. Each may be empty.
	ConfigMap, Folder, Witness string
	// Dir is the folder for the hashes. Default: the folder seal next to an embedded log.
	Dir      string
	Interval time.Duration
}

func (o *auditOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.Key, "audit-key", o.Key, "Secret with the key that signs the checkpoints of the log, NAMESPACE/NAME; it is created if it does not exist. The log is not sealed if empty")
	f.StringVar(&o.ConfigMap, "audit-configmap", o.ConfigMap, "ConfigMap to publish the newest checkpoint in, NAMESPACE/NAME")
	f.StringVar(&o.Folder, "audit-folder", o.Folder, "folder to publish all checkpoints and the hashes of the log in; use another volume than that of the log")
	f.StringVar(&o.Witness, "audit-witness", o.Witness, "URL of a witness (C2SP tlog-witness) to publish the checkpoints to")
	f.StringVar(&o.Dir, "audit-dir", o.Dir, "folder of the hashes of the log; seal in --log-dir if empty")
	f.DurationVar(&o.Interval, "audit-interval", o.Interval, "how often a checkpoint is published")
}

func (o *auditOptions) validate(log logOptions) error {
	switch {
	case o.Key == "" && (o.ConfigMap != "" || o.Folder != "" || o.Witness != ""):
		return errors.New("--audit-configmap, --audit-folder and --audit-witness need --audit-key")
	case o.Key == "":
		return nil
	case o.Dir == "" && log.Dir == "":
		return errors.New("--audit-key needs --audit-dir with --nats-url, to store the hashes of the log")
	case o.Interval < time.Second:
		return fmt.Errorf("--audit-interval is %s: it must be 1s or more", view.Duration(o.Interval))
	case !isNamespacedName(o.Key) || o.ConfigMap != "" && !isNamespacedName(o.ConfigMap):
		return errors.New("--audit-key and --audit-configmap must be NAMESPACE/NAME")
	case o.Witness != "" && !strings.HasPrefix(o.Witness, "https://") && !strings.HasPrefix(o.Witness, "http://"):
		return fmt.Errorf("--audit-witness is %q: it must begin with https:// or http://", o.Witness)
	}
	return nil
}

func isNamespacedName(s string) bool {
	namespace, name, ok := strings.Cut(s, "/")
	return ok && namespace != "" && name != ""
}

// sealing seals the log and publishes the checkpoints. It runs only in the leader.
type sealing struct {
	auditOptions
	log     evidence.Log
	clients *kubernetes.Clientset
	report  *report
	logger  *slog.Logger

	mu        sync.Mutex
	since     time.Time // when this process became the leader
	publisher *evidence.Publisher
}

func newSealing(o Options, config *rest.Config, home *home, report *report, logger *slog.Logger) (*sealing, error) {
	clients, err := newClients(config, "audit")
	if err != nil {
		return nil, fmt.Errorf("preparing to publish checkpoints: %w", err)
	}
	s := &sealing{auditOptions: o.Audit, log: home.log, clients: clients, report: report, logger: logger}
	s.Dir = cmp.Or(s.Dir, filepath.Join(o.Log.Dir, seal.Folder))
	return s, nil
}

func (s *sealing) run(ctx context.Context) error {
	s.mu.Lock()
	s.since = time.Now()
	s.mu.Unlock()
	_ = wait.PollUntilContextCancel(ctx, keyRetryInterval, true, func(ctx context.Context) (bool, error) { // returns an error only when ctx has ended
		p, err := s.open(ctx)
		if err != nil {
			s.alarm(false, fmt.Errorf("the event log is not sealed: %w", err))
			return false, nil
		}
		s.mu.Lock()
		s.publisher = p
		s.mu.Unlock()
		p.Run(ctx, s.Interval)
		return true, nil
	})
	return nil
}

func (s *sealing) open(ctx context.Context) (*evidence.Publisher, error) {
	namespace, name, _ := strings.Cut(s.Key, "/")
	key, err := evidence.SecretKey(ctx, s.clients.CoreV1().Secrets(namespace), name)
	if err != nil {
		return nil, err
	}
	public, err := key.Public(s.log.ID())
	if err != nil {
		return nil, err
	}
	sealer, err := seal.OpenSealer(s.Dir, s.log, key)
	if err != nil {
		return nil, err
	}
	s.logger.Info("sealing the event log", "publicKey", string(public), "interval", s.Interval)
	return &evidence.Publisher{Log: s.log, Sealer: sealer, Key: public, Dir: s.Dir, Destinations: s.destinations(), Alarm: s.alarm}, nil
}

func (s *sealing) destinations() []evidence.Destination {
	var places []evidence.Destination
	if namespace, name, ok := strings.Cut(s.ConfigMap, "/"); ok {
		places = append(places, &evidence.ConfigMap{Client: s.clients.CoreV1().ConfigMaps(namespace), Object: name})
	}
	if s.Folder != "" {
		places = append(places, &evidence.Folder{Path: s.Folder})
	}
	if s.Witness != "" {
		places = append(places, &evidence.Witness{URL: s.Witness, Client: &http.Client{Timeout: witnessTimeout}})
	}
	return places
}

// alarm logs a failure. If the log differs from its seals, it also records a Kubernetes event.
func (s *sealing) alarm(violated bool, err error) {
	if !violated {
		s.logger.Warn("sealing the event log or publishing its checkpoint failed; retrying", "error", err)
		return
	}
	s.logger.Error("the event log differs from what was sealed", "error", err)
	s.report.event("LogViolated", err.Error())
}

// publishFinal publishes a checkpoint of the last events. The caller has stopped everything else.
func (s *sealing) publishFinal() {
	s.mu.Lock()
	p := s.publisher
	s.mu.Unlock()
	if p == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), finalSealTimeout)
	defer cancel()
	p.Publish(ctx)
	if err := p.Sealer.Close(); err != nil {
		s.logger.Warn("closing the seals", "error", err)
	}
}

// Describe implements prometheus.Collector.
func (s *sealing) Describe(ch chan<- *prometheus.Desc) {
	sequence, at, violated := auditDescs()
	ch <- sequence
	ch <- at
	ch <- violated
}

func auditDescs() (sequence, at, violated *prometheus.Desc) {
	describe := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, []string{"place"}, nil)
	}
	return describe("scute_audit_sequence", "Sequence up to which the event log is sealed, and published to each place."),
		describe("scute_audit_timestamp_seconds", "When the log was last sealed and published to each place, or otherwise when this process began to act."),
		describe("scute_audit_violated", "1 if the event log differs from what was sealed, according to the log itself or to a published place.")
}

// states returns the state of the log's seal and of each destination. It returns nothing if this
// process does not lead. For a destination without a checkpoint, the time counts from when this
// process became the leader, because a missing metric would raise no alert.
func (s *sealing) states() map[string]evidence.State {
	s.mu.Lock()
	p, since := s.publisher, s.since
	s.mu.Unlock()
	states := make(map[string]evidence.State)
	if since.IsZero() {
		return states
	}
	if p != nil {
		maps.Copy(states, p.States())
	}
	names := []string{evidence.SealState}
	for _, place := range s.destinations() {
		names = append(names, place.Name())
	}
	for _, name := range names {
		if state := states[name]; state.At.IsZero() {
			state.At = since
			states[name] = state
		}
	}
	return states
}

// Collect implements prometheus.Collector.
func (s *sealing) Collect(ch chan<- prometheus.Metric) {
	sequence, at, violated := auditDescs()
	for place, state := range s.states() {
		differs := 0.0
		if state.Violated {
			differs = 1
		}
		ch <- prometheus.MustNewConstMetric(violated, prometheus.GaugeValue, differs, place)
		if !state.At.IsZero() {
			ch <- prometheus.MustNewConstMetric(sequence, prometheus.GaugeValue, float64(state.Size), place)
			ch <- prometheus.MustNewConstMetric(at, prometheus.GaugeValue, float64(state.At.Unix()), place)
		}
	}
}
