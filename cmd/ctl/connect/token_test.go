package connect

import (
	"context"
	"io"
	"log/slog"
	"net/http/httptest"
	neturl "net/url"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
)

const readers, operators = "the token of the readers", "the token of the operators"

// clusterWithSecrets returns a cluster with the Secrets of both roles, some of which are forbidden to read.
func clusterWithSecrets(forbidden ...string) *Cluster {
	secret := func(name, token string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "scute-system", Name: name}, Data: map[string][]byte{"token": []byte(token + "\n")}}
	}
	c := fake.NewClientBuilder().WithObjects(secret("scute-log-reader", readers), secret("scute-log-operator", operators)).
		WithInterceptorFuncs(interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if slices.Contains(forbidden, key.Name) {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, key.Name, nil)
			}
			return c.Get(ctx, key, o, opts...)
		}}).Build()
	return &Cluster{Client: c}
}

// TestTokenOfARole checks that the token of the role that a command needs is used, and that an operator's token can
// also be used for reading.
func TestTokenOfARole(t *testing.T) {
	quiet, asks := slog.New(slog.DiscardHandler), pod("--log-access=scute-system/scute-log")
	for name, c := range map[string]struct {
		role      embedded.Role
		forbidden []string
		token     string
		says      []string
	}{
		"reads":            {embedded.Reader, nil, readers, nil},
		"appends":          {embedded.Operator, nil, operators, nil},
		"operator reads":   {embedded.Reader, []string{"scute-log-reader"}, operators, nil},
		"reader appends":   {embedded.Operator, []string{"scute-log-operator"}, "", []string{"Secret scute-system/scute-log-operator", "append to the log", "Role scute-system/scute-log has it"}},
		"nobody in reader": {embedded.Reader, []string{"scute-log-reader", "scute-log-operator"}, "", []string{"Secret scute-system/scute-log-reader", "ask for permission to get that Secret", "Role scute-system/scute-log-reader"}},
	} {
		p, err := podToken(t.Context(), clusterWithSecrets(c.forbidden...), asks, c.role, quiet)
		if c.token != "" && (err != nil || p.refresh() != c.token) {
			t.Errorf("%s: got error %v", name, err)
		}
		for _, want := range c.says {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got error %v, want %q", name, err, want)
			}
		}
	}
	if p, err := podToken(t.Context(), clusterWithSecrets(), pod("--log-listen=127.0.0.1:4222"), embedded.Reader, quiet); p != nil || err != nil {
		t.Errorf("daemon without tokens: admit = %v, %v", p, err)
	}
	missing := &Cluster{Client: fake.NewClientBuilder().Build()}
	if _, err := podToken(t.Context(), missing, asks, embedded.Reader, quiet); err == nil || !strings.Contains(err.Error(), "the daemon creates it when it starts") {
		t.Errorf("without a Secret: got error %v", err)
	}
}

// TestTokenLeadsToTheLog checks that a log that requires tokens can be read and appended to through a port-forward, and
// that a changed token is read again.
func TestTokenLeadsToTheLog(t *testing.T) {
	quiet, access := slog.New(slog.DiscardHandler), &embedded.Access{}
	log, err := embedded.Open(t.Context(), embedded.Options{Dir: t.TempDir(), Listen: "127.0.0.1:0", Access: access})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	access.Set(embedded.Reader, readers)
	access.Set(embedded.Operator, operators)
	address := strings.TrimPrefix(log.URL(), "nats://")
	api := httptest.NewServer(kubelet(address))
	defer api.Close()
	dialer, err := newPodDialer(t.Context(), entryTo(api.URL), quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer dialer.stop()
	cluster := clusterWithSecrets()
	p, err := podToken(t.Context(), cluster, pod("--log-access=scute-system/scute-log"), embedded.Reader, quiet)
	if err != nil {
		t.Fatal(err)
	}
	reader, err := New().connectPod(t.Context(), dialer, p, quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()

	// A version that does not know tokens gets this error.
	if _, err := New().connectPod(t.Context(), dialer, nil, quiet); err == nil || !strings.Contains(err.Error(), "Authorization Violation") || !strings.Contains(err.Error(), "--nats-creds") {
		t.Errorf("without a token: got error %v", err)
	}

	// A token in the address is not shown.
	f := New()
	f.URL = "nats://" + neturl.User(readers).String() + "@" + address
	named, err := f.Log(t.Context(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer named.Close()
	if told := named.Where + strings.Join(f.ConnectArgs(), " "); strings.Contains(told, "readers") || !strings.Contains(told, address) {
		t.Errorf("shown address = %q", told)
	}

	// The daemon reads the change first: it closes the connection, and the next connection uses the new token.
	var secret corev1.Secret
	key := client.ObjectKey{Namespace: "scute-system", Name: "scute-log-reader"}
	if err := cluster.Client.Get(t.Context(), key, &secret); err != nil {
		t.Fatal(err)
	}
	secret.Data["token"] = []byte("another token of the readers")
	if err := cluster.Client.Update(t.Context(), &secret); err != nil {
		t.Fatal(err)
	}
	following, stop := context.WithCancel(t.Context())
	defer stop()
	seen, ended := make(chan uint64, 1), make(chan error, 1)
	go func() {
		ended <- reader.Follow(following, 0, func(r eventlog.Record) error { seen <- r.Seq; return nil })
	}()
	access.Set(embedded.Reader, "another token of the readers")
	if _, err := log.Append(t.Context(), eventlog.Commit{
		Aggregate: eventlog.Aggregate{Kind: eventlog.KindMove, ID: "a"}, ID: "1",
		Events: []eventlog.Event{{Type: "dev.scute.move.claimed.v1", Time: time.Now(), Actor: "user/test", Data: []byte(`{}`)}},
	}); err != nil {
		t.Fatal(err)
	}
	select {
	case seq := <-seen:
		if seq != 1 {
			t.Errorf("after the change: got commit %d, want 1", seq)
		}
	case err := <-ended:
		t.Fatalf("after the change: Follow = %v", err)
	}
	stop()
	<-ended
	access.Set(embedded.Reader, "one that no Secret has any more")
	p.role = embedded.Reader
	if _, err := New().connectPod(t.Context(), dialer, p, quiet); err == nil || !strings.Contains(err.Error(), "rejects the token of Secret scute-system/scute-log-reader") {
		t.Errorf("rejected token: got error %v", err)
	}
}
