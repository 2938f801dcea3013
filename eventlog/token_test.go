package eventlog_test

import (
	"errors"
	"testing"

	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
)

// TestToken checks that a log with a token accepts only clients with this token.
func TestToken(t *testing.T) {
	log, err := embedded.Open(t.Context(), embedded.Options{Dir: t.TempDir(), Listen: "127.0.0.1:0", Token: "open sesame"})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	friend, err := eventlog.Connect(t.Context(), eventlog.ExternalOptions{URL: log.URL(), Token: "open sesame"})
	if err != nil {
		t.Fatal(err)
	}
	defer friend.Close()
	if _, err := friend.Head(t.Context()); err != nil {
		t.Error(err)
	}
	for _, token := range []string{"", "open barley"} {
		stranger, err := eventlog.Connect(t.Context(), eventlog.ExternalOptions{URL: log.URL(), Token: token})
		if !errors.Is(err, eventlog.ErrUnavailable) {
			t.Errorf("Connect with token %q = %v, want ErrUnavailable", token, err)
			if err == nil {
				stranger.Close()
			}
		}
	}
}
