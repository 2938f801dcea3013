package app

import (
	"strings"
	"testing"
)

func TestValidateNamesTheFlag(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Options)
		want   string // "" if the options are valid
	}{
		"embedded":             {func(o *Options) { o.Log.Dir = "d" }, ""},
		"external":             {func(o *Options) { o.Log.URL = "nats://n"; o.Log.Creds = "c" }, ""},
		"no home":              {func(*Options) {}, "--log-dir or --nats-url"},
		"two homes":            {func(o *Options) { o.Log.Dir, o.Log.URL = "d", "nats://n" }, "cannot be used together"},
		"credentials for none": {func(o *Options) { o.Log.Dir, o.Log.Creds = "d", "c" }, "need --nats-url"},
		"half a key pair":      {func(o *Options) { o.Log.URL, o.Log.Cert = "nats://n", "c" }, "must be set together"},
		"tokens":               {func(o *Options) { o.Log.Dir, o.Log.Listen, o.Log.Access = "d", "127.0.0.1:4222", "a/b" }, ""},
		"tokens for nothing":   {func(o *Options) { o.Log.Dir, o.Log.Access = "d", "a/b" }, "--log-access needs"},
		"tokens of nowhere":    {func(o *Options) { o.Log.Dir, o.Log.Listen, o.Log.Access = "d", "127.0.0.1:4222", "b" }, "NAMESPACE/NAME"},
		"no concurrency":       {func(o *Options) { o.Log.Dir, o.MoveConcurrency = "d", 0 }, "--move-concurrency"},
		"no workers":           {func(o *Options) { o.Log.Dir, o.MoveWorkers = "d", 0 }, "--move-workers"},
		"no runs":              {func(o *Options) { o.Log.Dir, o.RunConcurrency = "d", 0 }, "--run-concurrency"},
		"no tasks":             {func(o *Options) { o.Log.Dir, o.RunParallel = "d", 0 }, "--run-parallel"},
		"no remediations":      {func(o *Options) { o.Log.Dir, o.RemediationConcurrency = "d", 0 }, "--remediation-concurrency"},
		"policy":               {func(o *Options) { o.Log.Dir, o.DefaultFailurePolicy = "d", "Hope" }, "--default-failure-policy or SCUTE_DEFAULT_FAILURE_POLICY"},
		"format":               {func(o *Options) { o.Log.Dir, o.LogFormat = "d", "xml" }, "--log-format"},
		"webhook": {func(o *Options) {
			o.Log.Dir, o.Webhook = "d", webhookOptions{URL: "https://example.com/scute", Position: "scute-system/scute-webhook", Secret: "s"}
		}, ""},
		"webhook of no URL":  {func(o *Options) { o.Log.Dir, o.Webhook.Secret = "d", "s" }, "need --webhook-url"},
		"webhook of nowhere": {func(o *Options) { o.Log.Dir, o.Webhook = "d", webhookOptions{URL: "example.com", Position: "a/b"} }, "must begin with https://"},
		"webhook with a password": {func(o *Options) {
			o.Log.Dir, o.Webhook = "d", webhookOptions{URL: "https://a:hidden@b", Position: "a/b"}
		}, "must have no user"},
		"webhook without position": {func(o *Options) { o.Log.Dir, o.Webhook.URL = "d", "https://example.com" }, "--webhook-position"},
		"traces":                   {func(o *Options) { o.Log.Dir, o.Tracing.Position = "d", "scute-system/scute-tracing" }, "OTEL_EXPORTER_OTLP_ENDPOINT"},
		"traces without namespace": {func(o *Options) { o.Log.Dir, o.Tracing.Position = "d", "scute-tracing" }, "--tracing-position"},
		"level":                    {func(o *Options) { o.Log.Dir, o.LogLevel = "d", "loud" }, "--log-level"},
	} {
		t.Run(name, func(t *testing.T) {
			o := New()
			c.change(&o)
			err := o.Validate()
			if err != nil && strings.Contains(err.Error(), "hidden") {
				t.Errorf("the error contains a password: %v", err)
			}
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("Validate = %v, want %q", err, c.want)
			}
		})
	}
}

func TestWhereSpansAreSent(t *testing.T) {
	o := tracingOptions{Position: "scute-system/scute-tracing"}
	for value, want := range map[string]string{
		"https://collector:4317": "", "http://127.0.0.1:4317": "", "collector:4317": "must begin with https://", "https://": "must begin with https://", "https://a:hidden@b": "must have no user",
	} {
		for _, variable := range []string{endpointVariable, tracesEndpointVariable} {
			err := o.validate(func(name string) string {
				if name == variable {
					return value
				}
				return ""
			})
			if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), variable+" "+want) || strings.Contains(err.Error(), "hidden")) {
				t.Errorf("%s=%s: validate = %v, want %q", variable, value, err, want)
			}
		}
	}
}

func TestIdentityIsThatOfTheFolder(t *testing.T) {
	dir := t.TempDir()
	first, err := identity(dir)
	if err != nil {
		t.Fatal(err)
	}
	again, err := identity(dir)
	if err != nil || again != first {
		t.Errorf("identity = %q, then %q (%v), so a restarted daemon would wait for its own Lease", first, again, err)
	}
	other, err := identity(t.TempDir())
	if err != nil || other == first {
		t.Errorf("another folder has the same identity %q (%v)", other, err)
	}
}
