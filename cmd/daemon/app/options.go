package app

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"scute.dev/aggregate"
	"scute.dev/internal/logaccess"
	"scute.dev/kube/guard"
	"scute.dev/workflow"
)

// Options are the options of the daemon. Create them with New, which sets the defaults.
type Options struct {
	// Version of this program, for metrics.
	Version         string
	Log             logOptions
	Audit           auditOptions
	Webhook         webhookOptions
	Tracing         tracingOptions
	LeaderElection  bool
	HealthAddress   string
	MetricsAddress  string
	LogLevel        string
	LogFormat       string
	MoveConcurrency int
	MoveWorkers     int
	RunConcurrency  int
	RunParallel     int
	// NamespaceEvents and NamespaceBytes limit how much the runs and moves of one namespace append to
	// the log within an hour; 0 means no limit.
	NamespaceEvents, NamespaceBytes int
	// Remediation enables the repair of machines that RepairPolicies select.
	Remediation            bool
	RemediationConcurrency int
	// AllowAddresses are addresses that are not public, but to which users may make the daemon
	// connect.
	AllowAddresses []string
	// ShareCredentialsWith are namespaces whose Moves and BackupSchedules may include objects of other
	// namespaces: Secrets that cluster-scoped identities own, and ClusterClasses with their templates.
	// "*" means all namespaces.
	ShareCredentialsWith []string
	Backups              backupOptions
	// EnableExec lets WorkflowRuns run commands in the daemon's container.
	EnableExec bool
	// DefaultFailurePolicy is the failure policy of runs that specify none; "" means Abort.
	DefaultFailurePolicy string

	// Config is the configuration for connections to the management cluster. By default it is loaded
	// as kubectl does.
	Config *rest.Config
	// WrapTransport wraps every connection to an API server. WrapLog wraps the log to which moves,
	// runs and remediations append. Both exist for fault tests.
	WrapTransport func(http.RoundTripper) http.RoundTripper
	WrapLog       func(aggregate.Log) aggregate.Log
}

type logOptions struct {
	Dir, Listen string
	// Access (NAMESPACE/NAME) names the Secrets with the tokens for Listen. If it is "", clients need
	// no token.
	Access         string
	MaxBytes       int64
	URL, Creds, CA string
	Cert, Key      string
	Replicas       int
}

// defaultPolicyVariable is the environment variable that sets the default of
// --default-failure-policy, for both scuted and scutectl.
const defaultPolicyVariable = "SCUTE_DEFAULT_FAILURE_POLICY"

// New returns the default options.
func New() Options {
	return Options{
		LeaderElection: true, HealthAddress: ":8081", MetricsAddress: ":8080", LogLevel: "info", LogFormat: "json",
		MoveConcurrency: 4, MoveWorkers: 32, RunConcurrency: 8, RunParallel: 16, NamespaceEvents: 50_000, NamespaceBytes: 64 << 20, Remediation: true, RemediationConcurrency: 4, Backups: backupOptions{Concurrency: 2, MaxBytes: 192 << 20}, Log: logOptions{Replicas: 1}, Audit: auditOptions{Interval: time.Minute},
		DefaultFailurePolicy: os.Getenv(defaultPolicyVariable),
	}
}

// AddFlags registers the flags.
func (o *Options) AddFlags(f *pflag.FlagSet) {
	if kubeconfig := flag.CommandLine.Lookup("kubeconfig"); kubeconfig != nil { // registered by controller-runtime
		f.AddGoFlag(kubeconfig)
	}
	f.StringVar(&o.Log.Dir, "log-dir", o.Log.Dir, "folder of the embedded event log; every acknowledged event is synced to disk there")
	f.StringVar(&o.Log.Listen, "log-listen", o.Log.Listen, "address on which scutectl can reach the embedded log, for example 127.0.0.1:4222; none if empty")
	f.StringVar(&o.Log.Access, "log-access", o.Log.Access, "Secrets with the tokens for --log-listen, NAMESPACE/NAME: NAME-reader for clients that may read the log, NAME-operator for clients that may also append; each is created if it does not exist. If empty, anybody who can reach --log-listen may do both")
	f.Int64Var(&o.Log.MaxBytes, "log-max-bytes", o.Log.MaxBytes, "size at which the log refuses new events, in bytes; 0 for the default")
	f.StringVar(&o.Log.URL, "nats-url", o.Log.URL, "external NATS server that stores the log, instead of --log-dir")
	f.StringVar(&o.Log.Creds, "nats-creds", o.Log.Creds, "NATS credentials file")
	f.StringVar(&o.Log.CA, "nats-ca", o.Log.CA, "file with the certificate authority of the NATS server")
	f.StringVar(&o.Log.Cert, "nats-cert", o.Log.Cert, "client certificate file for NATS")
	f.StringVar(&o.Log.Key, "nats-key", o.Log.Key, "client key file for NATS")
	f.IntVar(&o.Log.Replicas, "log-replicas", o.Log.Replicas, "replicas of the stream on an external NATS, when scuted creates it")
	o.Audit.addFlags(f)
	o.Webhook.addFlags(f)
	o.Tracing.addFlags(f)
	f.BoolVar(&o.LeaderElection, "leader-elect", o.LeaderElection, "act only while holding the Lease scuted.scute.dev in namespace kube-system")
	f.StringVar(&o.HealthAddress, "health-address", o.HealthAddress, "address of /healthz and /readyz; 0 for none")
	f.StringVar(&o.MetricsAddress, "metrics-address", o.MetricsAddress, "address of /metrics; 0 for none")
	f.StringVar(&o.LogLevel, "log-level", o.LogLevel, "debug, info, warn or error")
	f.StringVar(&o.LogFormat, "log-format", o.LogFormat, "json or text")
	f.IntVar(&o.MoveConcurrency, "move-concurrency", o.MoveConcurrency, "moves that work at once, not counting those that wait. A namespace without one may always start one, up to twice this number in total")
	f.IntVar(&o.MoveWorkers, "move-workers", o.MoveWorkers, "concurrent calls to an API server for one move")
	f.IntVar(&o.RunConcurrency, "run-concurrency", o.RunConcurrency, "runs of workflows that work at once, not counting those that wait. A namespace without one may always start one, up to twice this number in total")
	f.IntVar(&o.RunParallel, "run-parallel", o.RunParallel, "tasks of one run that run at once")
	f.IntVar(&o.NamespaceEvents, "namespace-events-per-hour", o.NamespaceEvents, "events that runs and moves of one namespace may append to the log within an hour, before nothing more is started there; 0 for no limit")
	f.IntVar(&o.NamespaceBytes, "namespace-bytes-per-hour", o.NamespaceBytes, "the same in bytes")
	f.BoolVar(&o.Remediation, "remediation", o.Remediation, "remediate the machines that RepairPolicies select")
	f.IntVar(&o.RemediationConcurrency, "remediation-concurrency", o.RemediationConcurrency, "owners of machines that are reconciled at once")
	f.StringSliceVar(&o.AllowAddresses, "allow-addresses", o.AllowAddresses, "addresses and ranges outside the public Internet that Moves, WorkflowRuns and BackupSchedules may make scuted connect to, for example 10.0.0.0/8")
	f.StringSliceVar(&o.ShareCredentialsWith, "share-credentials-with", o.ShareCredentialsWith, "namespaces whose Moves and BackupSchedules include objects of other namespaces: Secrets owned by cluster-scoped identities, such as AWSClusterStaticIdentities, and ClusterClasses with their templates; * for all. Anybody who may create a Move or a BackupSchedule there can read them")
	o.Backups.addFlags(f)
	f.BoolVar(&o.EnableExec, "enable-exec", o.EnableExec, "let tasks of the kind Exec run commands in this container: anybody who may create a WorkflowRun then has the daemon's permissions")
	f.StringVar(&o.DefaultFailurePolicy, "default-failure-policy", o.DefaultFailurePolicy, "failure policy of runs that do not set one: Abort, Rollback, Ignore, IgnoreChildren or Pause; "+defaultPolicyVariable+" sets it too, Abort if empty")
}

// Validate returns an error that names the invalid flag and the remedy.
func (o *Options) Validate() error {
	switch {
	case o.Log.Dir == "" && o.Log.URL == "":
		return errors.New("--log-dir or --nats-url is required: it names the location of the event log")
	case o.Log.Dir != "" && o.Log.URL != "":
		return errors.New("--log-dir and --nats-url cannot be used together: choose one location for the event log")
	case o.Log.URL == "" && (o.Log.Creds != "" || o.Log.CA != "" || o.Log.Cert != "" || o.Log.Key != ""):
		return errors.New("--nats-creds, --nats-ca, --nats-cert and --nats-key need --nats-url")
	case o.Log.Access != "" && (o.Log.Dir == "" || o.Log.Listen == ""):
		return errors.New("--log-access needs --log-dir and --log-listen")
	case (o.Log.Cert == "") != (o.Log.Key == ""):
		return errors.New("--nats-cert and --nats-key must be set together")
	case o.DefaultFailurePolicy != "" && !slices.Contains(workflow.FailurePolicies(), o.DefaultFailurePolicy):
		return fmt.Errorf("--default-failure-policy or %s is %q: it must be Abort, Rollback, Ignore, IgnoreChildren or Pause", defaultPolicyVariable, o.DefaultFailurePolicy)
	case o.LogFormat != "json" && o.LogFormat != "text":
		return fmt.Errorf("--log-format is %q: it must be json or text", o.LogFormat)
	}
	for _, number := range []struct {
		flag         string
		value, least int
	}{
		{"move-concurrency", o.MoveConcurrency, 1},
		{"move-workers", o.MoveWorkers, 1},
		{"run-concurrency", o.RunConcurrency, 1},
		{"run-parallel", o.RunParallel, 1},
		{"namespace-events-per-hour", o.NamespaceEvents, 0},
		{"namespace-bytes-per-hour", o.NamespaceBytes, 0},
		{"remediation-concurrency", o.RemediationConcurrency, 1},
		{"cluster-backup-concurrency", o.Backups.Concurrency, 1},
	} {
		if number.value < number.least {
			return fmt.Errorf("--%s is %d: it must be %d or more", number.flag, number.value, number.least)
		}
	}
	if o.Log.Access != "" {
		if _, err := logaccess.Parse(o.Log.Access); err != nil {
			return err
		}
	}
	if err := cmp.Or(o.Audit.validate(o.Log), o.Backups.validate(), o.Webhook.validate(), o.Tracing.validate(os.Getenv)); err != nil {
		return err
	}
	if _, err := guard.New(o.AllowAddresses); err != nil {
		return fmt.Errorf("--allow-addresses: %w", err)
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.LogLevel)); err != nil {
		return fmt.Errorf("--log-level is %q: it must be debug, info, warn or error", o.LogLevel)
	}
	return nil
}

func (o Options) shares(namespace string) bool {
	return slices.Contains(o.ShareCredentialsWith, namespace) || slices.Contains(o.ShareCredentialsWith, "*")
}

func (o *Options) handler() slog.Handler {
	var level slog.Level
	_ = level.UnmarshalText([]byte(o.LogLevel)) // validated
	if o.LogFormat == "text" {
		return slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})
	}
	return slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: level})
}
