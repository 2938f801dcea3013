package connect

import (
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/clientcmd"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/eventlog"
	"scute.dev/view"
)

// Flags are the flags that locate the management cluster and the log.
type Flags struct {
	// Kubeconfig to AsGroups are kubectl's flags.
	Kubeconfig, Context string
	Namespace           string
	As                  string
	AsGroups            []string
	// Local selects the log of local runs, in Dir or in LocalDir.
	Local bool
	// Dir is the folder of the log of a stopped daemon, or of local runs.
	Dir string
	// URL is the NATS server with the log. The other fields are its credentials.
	URL, Creds, CA, Cert, Key string
	// Examine reads what can be read of a damaged log. For a log in a folder it reads a copy, because
	// the NATS server repairs a folder that it opens.
	Examine        bool
	ScuteNamespace string
	LogTimeout     time.Duration
}

// New returns Flags with the defaults.
func New() *Flags { return &Flags{ScuteNamespace: "scute-system", LogTimeout: 15 * time.Second} }

// LocalDir is the default folder of the log of local runs.
const LocalDir = ".scute"

// AddLocal registers --local.
func (f *Flags) AddLocal(flags *pflag.FlagSet) {
	flags.BoolVar(&f.Local, "local", f.Local, "Use the log of local runs (scutectl run --local): --log, or "+LocalDir+" if that is empty")
}

// Check sets the defaults that depend on other flags, and rejects conflicting flags.
func (f *Flags) Check() error {
	if f.Local && f.Dir == "" && f.URL == "" {
		f.Dir = LocalDir
	}
	switch {
	case f.Local && f.URL != "":
		return cli.Usagef("--local and --nats cannot be used together: the log of local runs is in a folder")
	case f.Dir != "" && f.URL != "":
		return cli.Usagef("--log and --nats cannot be used together: the log is in a folder or on a server")
	case f.URL == "" && (f.Creds != "" || f.CA != "" || f.Cert != "" || f.Key != ""):
		return cli.Usagef("--nats-creds, --nats-ca, --nats-cert and --nats-key need --nats")
	case (f.Cert == "") != (f.Key == ""):
		return cli.Usagef("--nats-cert and --nats-key must be set together")
	case len(f.AsGroups) > 0 && f.As == "":
		return cli.Usagef("--as-group needs --as")
	case f.Namespace != "" && len(validation.IsDNS1123Label(f.Namespace)) > 0:
		return cli.Usagef("-n is %q, which is not a valid name in Kubernetes: %s", f.Namespace, validation.IsDNS1123Label(f.Namespace)[0])
	case f.LogTimeout <= 0:
		return cli.Usagef("--log-timeout is %s: it must be greater than zero", view.Duration(f.LogTimeout))
	}
	return nil
}

// AddNamespace registers --namespace. what names the objects in its help, for example "moves".
func (f *Flags) AddNamespace(flags *pflag.FlagSet, what string) {
	flags.StringVarP(&f.Namespace, "namespace", "n", f.Namespace, "Namespace of the "+what+"; the context's own if empty")
}

// AddFlags registers the flags.
func (f *Flags) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&f.Kubeconfig, "kubeconfig", f.Kubeconfig, "Kubeconfig file; KUBECONFIG or ~/.kube/config if empty")
	flags.StringVar(&f.Context, "context", f.Context, "Context of the kubeconfig; its current one if empty")
	flags.StringVar(&f.As, "as", f.As, "User to act as")
	flags.StringSliceVar(&f.AsGroups, "as-group", f.AsGroups, "Group to act as; may be repeated")
	flags.StringVar(&f.Dir, "log", f.Dir, "Folder of the event log of a stopped daemon or of local runs, to read instead of the cluster")
	flags.StringVar(&f.URL, "nats", f.URL, "Address of the NATS server with the event log, to read instead of the cluster, for example tls://nats:4222")
	flags.StringVar(&f.Creds, "nats-creds", f.Creds, "NATS credentials file")
	flags.StringVar(&f.CA, "nats-ca", f.CA, "File with the certificate authority of the NATS server")
	flags.StringVar(&f.Cert, "nats-cert", f.Cert, "Client certificate file for NATS")
	flags.StringVar(&f.Key, "nats-key", f.Key, "Client key file for NATS")
	flags.StringVar(&f.ScuteNamespace, "scute-namespace", f.ScuteNamespace, "Namespace that the daemon runs in")
	flags.DurationVar(&f.LogTimeout, "log-timeout", f.LogTimeout, "How long to try to reach the log")
}

// LogOnly reports whether the user named a log. In that case the cluster is not read.
func (f *Flags) LogOnly() bool { return f.Dir != "" || f.URL != "" }

// ConnectArgs returns the flags that connect to the same cluster or log.
func (f *Flags) ConnectArgs() (words []string) {
	dir, namespace := f.Dir, f.ScuteNamespace
	if namespace == New().ScuteNamespace {
		namespace = ""
	}
	if f.Local {
		words = append(words, "--local")
		if dir == LocalDir {
			dir = ""
		}
	}
	for _, o := range []struct{ name, value string }{
		{"--kubeconfig", f.Kubeconfig},
		{"--context", f.Context},
		{"--as", f.As},
		{"--as-group", strings.Join(f.AsGroups, ",")},
		{"--log", dir},
		{"--nats", eventlog.RedactURL(f.URL)},
		{"--nats-creds", f.Creds},
		{"--nats-ca", f.CA},
		{"--nats-cert", f.Cert},
		{"--nats-key", f.Key},
		{"--scute-namespace", namespace},
	} {
		if o.value != "" {
			words = append(words, o.name, o.value)
		}
	}
	return words
}

// loader finds the kubeconfig as kubectl does.
func (f *Flags) loader() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.Kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: f.Context}
	overrides.Context.Namespace = f.Namespace
	overrides.AuthInfo.Impersonate, overrides.AuthInfo.ImpersonateGroups = f.As, f.AsGroups
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
}
