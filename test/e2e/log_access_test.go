package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/test/harness"
	"scute.dev/test/ports"
	"scute.dev/test/scuted"
)

// TestLogAccess checks that the daemon, with the chart's permissions, creates the tokens of its log and accepts a
// changed one without a restart. A client with the token of readers follows the log across the change without a gap,
// and may not append.
func TestLogAccess(t *testing.T) {
	ctx := harness.Deadline(t, 5*time.Minute)
	admin, listen := shared.blue.Side.Client(), ports.AddressForTest(t)
	requests := auditTrail(t, shared.blue)
	d := harness.Daemon(t, shared.blue, scuted.DaemonOptions{Listen: listen, Args: []string{"--log-access", scuted.Namespace + "/scute-log"}})
	token := func(role string) string {
		var s corev1.Secret
		if err := admin.Get(ctx, client.ObjectKey{Namespace: scuted.Namespace, Name: "scute-log-" + role}, &s); err != nil {
			return "" // not created yet
		}
		return string(s.Data["token"])
	}
	connect := func(token func() string) (log *eventlog.Log) {
		t.Helper()
		harness.Await(ctx, t, "the log is reached", func() string {
			var err error
			if log, err = eventlog.Connect(ctx, eventlog.ExternalOptions{URL: "nats://" + listen, TokenFrom: token}); err != nil {
				return err.Error()
			}
			return ""
		})
		t.Cleanup(func() { _ = log.Close() })
		return log
	}
	reader := connect(func() string { return token("reader") })
	operator := connect(func() string { return token("operator") })
	before := token("reader")
	_, err := eventlog.Connect(ctx, eventlog.ExternalOptions{URL: "nats://" + listen})
	if !errors.Is(err, eventlog.ErrDenied) {
		t.Errorf("Connect without a token = %v, want ErrDenied", err)
	}

	following, stop := context.WithCancel(ctx)
	defer stop()
	followed := make(chan struct{})
	seen, arrived := make(chan uint64, 10_000), uint64(0)
	go func() {
		_ = reader.Follow(following, 0, func(r eventlog.Record) error { seen <- r.Seq; return nil })
		close(followed)
	}()
	s := workflowStage(ctx, t, "log-access")
	for i := range 4 {
		name := fmt.Sprint("made-", i)
		s.run(ctx, t, name, v1alpha1.RunSucceeded, "tasks:\n"+apply("a", configMap(name, "1"), ""))
		if i == 1 { // followed by more commits
			harness.Must(t, admin.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: scuted.Namespace, Name: "scute-log-reader"}}))
			harness.Await(ctx, t, "the reader has another token", func() string {
				if now := token("reader"); now == "" || now == before {
					return "it has the one before"
				}
				return ""
			})
		}
	}
	until, err := operator.Head(ctx)
	harness.Must(t, err)
	for arrived < until {
		select {
		case seq := <-seen:
			if seq != arrived+1 {
				t.Fatalf("commit %d was followed by %d", arrived, seq)
			}
			arrived = seq
		case <-ctx.Done():
			t.Fatalf("%d of %d commits arrived before the deadline", arrived, until)
		}
	}
	stop()
	<-followed
	if _, err := eventlog.Connect(ctx, eventlog.ExternalOptions{URL: "nats://" + listen, Token: before}); !errors.Is(err, eventlog.ErrDenied) {
		t.Errorf("Connect with the old token = %v, want ErrDenied", err)
	}
	harness.Must(t, d.Exited())
	harness.Must(t, d.Stop(ctx))
	for _, r := range requests.requests(t, ofDaemon) {
		if r.ResponseStatus.Code == 401 || r.ResponseStatus.Code == 403 {
			t.Errorf("request was denied: %s", r)
		}
	}
	readsOnly(ctx, t, admin)
}

// readsOnly checks that the chart's Role for readers permits the token of readers and not the token of operators.
func readsOnly(ctx context.Context, t *testing.T, admin client.Client) {
	t.Helper()
	harness.Must(t, admin.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: scuted.Namespace, Name: "auditor"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "scute-log-reader"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "auditor"}},
	}))
	secret := func(role string) authorizationv1.ResourceAttributes {
		return authorizationv1.ResourceAttributes{Namespace: scuted.Namespace, Verb: "get", Resource: "secrets", Name: "scute-log-" + role}
	}
	harness.Allowed(ctx, t, admin, "auditor", secret("reader"))
	may := secret("operator")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: "auditor", ResourceAttributes: &may}}
	harness.Must(t, admin.Create(ctx, review))
	if review.Status.Allowed {
		t.Error("a reader may read the token of operators")
	}
}
