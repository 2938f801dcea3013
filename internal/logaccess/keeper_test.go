package logaccess

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"scute.dev/eventlog/embedded"
)

type token struct {
	role embedded.Role
	text string
}

// TestKeeper checks that Secrets are created once and then watched. An existing Secret is used, a changed or deleted
// one changes the token, and an invalid one disables the role.
func TestKeeper(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	mine := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "scute-system", Name: "scute-log-reader"}, Data: map[string][]byte{field: []byte("a token that somebody chose\n")}}
	client := fake.NewClientset(mine).CoreV1().Secrets("scute-system")
	set := make(chan token, 16)
	k := &Keeper{
		Secrets: Secrets{"scute-system", "scute-log"}, Client: client, Logger: slog.New(slog.DiscardHandler),
		Set: func(role embedded.Role, text string) { set <- token{role, text} },
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.Run(ctx)
	}()
	defer func() { cancel(); <-done }()

	have := map[embedded.Role]string{}
	for range 2 {
		got := <-set
		have[got.role] = got.text
	}
	made, err := client.Get(ctx, "scute-log-operator", metav1.GetOptions{})
	if err != nil || have[embedded.Operator] != string(made.Data[field]) || len(have[embedded.Operator]) < minTokenLength || made.Labels[label] != "operator" {
		t.Fatalf("token of the operator = %q, Secret %v, error %v", have[embedded.Operator], made, err)
	}
	if have[embedded.Reader] != "a token that somebody chose" {
		t.Errorf("token of the reader = %q", have[embedded.Reader])
	}

	// The watches of the fake miss changes from before they started, so the change is repeated until it is seen.
	seen := func(change func() error, role embedded.Role, is func(string) bool) {
		t.Helper()
		for {
			if err := change(); err != nil {
				t.Fatal(err)
			}
			select {
			case got := <-set:
				if got.role == role && is(got.text) {
					return
				}
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
	update := func(text string) func() error {
		return func() error {
			secret, err := client.Get(ctx, mine.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			secret.Data = map[string][]byte{field: []byte(text)}
			_, err = client.Update(ctx, secret, metav1.UpdateOptions{})
			return err
		}
	}
	seen(update("the next token of the readers"), embedded.Reader, func(text string) bool { return text == "the next token of the readers" })
	seen(update("short"), embedded.Reader, func(text string) bool { return text == "" })
	before := have[embedded.Operator]
	seen(func() error {
		_ = client.Delete(ctx, "scute-log-operator", metav1.DeleteOptions{}) // it may be deleted already, and not yet created again
		return nil
	}, embedded.Operator, func(text string) bool { return text != "" && text != before })
}

// TestParse checks that Parse rejects invalid names of Secrets, and Token invalid tokens without quoting them.
func TestParse(t *testing.T) {
	if s, err := Parse("scute-system/scute-log"); err != nil || s.NameFor(embedded.Reader) != "scute-log-reader" {
		t.Errorf("Parse = %v, error %v", s, err)
	}
	for _, text := range []string{"", "scute-log", "/scute-log", "scute-system/", "a/b/c"} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), "NAMESPACE/NAME") {
			t.Errorf("Parse(%q) = %v, want an error", text, err)
		}
	}
	_, err := Token(map[string][]byte{field: []byte("hunter2")})
	if err == nil || strings.Contains(err.Error(), "hunter2") || errors.Is(err, context.Canceled) {
		t.Errorf("Token with a short token = %v", err)
	}
}
