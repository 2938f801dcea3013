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

// TestKeeper: Secrets are made once and watched. One that is there is taken as it is; one that changes or is deleted changes the token; one
// that has none gives the role to nobody.
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
	if err != nil || have[embedded.Operator] != string(made.Data[field]) || len(have[embedded.Operator]) < shortest || made.Labels[label] != "operator" {
		t.Fatalf("the operator has %q, the Secret %v, %v", have[embedded.Operator], made, err)
	}
	if have[embedded.Reader] != "a token that somebody chose" {
		t.Errorf("the reader has %q", have[embedded.Reader])
	}

	// What is changed before the watch began is seen by none of the fake's watches: it is changed until it is seen.
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
		_ = client.Delete(ctx, "scute-log-operator", metav1.DeleteOptions{}) // it may be gone, and not yet made
		return nil
	}, embedded.Operator, func(text string) bool { return text != "" && text != before })
}

// TestParse refuses what names no Secret, and Token what is no token, without telling it.
func TestParse(t *testing.T) {
	if s, err := Parse("scute-system/scute-log"); err != nil || s.Of(embedded.Reader) != "scute-log-reader" {
		t.Errorf("%v, %v", s, err)
	}
	for _, text := range []string{"", "scute-log", "/scute-log", "scute-system/", "a/b/c"} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), "NAMESPACE/NAME") {
			t.Errorf("%q: %v", text, err)
		}
	}
	_, err := Token(map[string][]byte{field: []byte("hunter2")})
	if err == nil || strings.Contains(err.Error(), "hunter2") || errors.Is(err, context.Canceled) {
		t.Errorf("a short token: %v", err)
	}
}
