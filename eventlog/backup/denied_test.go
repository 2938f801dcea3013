package backup_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
)

// TestDeniedRestore checks that a restore fails at once with the missing permission, at each of its steps.
func TestDeniedRestore(t *testing.T) {
	with := func(name string, p server.SubjectPermission) *server.User {
		return &server.User{Username: name, Password: "x", Permissions: &server.Permissions{Publish: &p}}
	}
	srv := logtest.Serve(t, &server.Options{Users: []*server.User{
		with("reader", server.SubjectPermission{Allow: []string{"$JS.API.STREAM.INFO.>"}}),
		with("administrator", server.SubjectPermission{Allow: []string{"$JS.API.>"}}),
		with("creator", server.SubjectPermission{Deny: []string{"$JS.API.STREAM.UPDATE.>"}}),
	}})
	for _, c := range []struct{ user, lacks string }{
		{"reader", `publish to "$JS.API.STREAM.RESTORE.SCUTE"`},
		{"administrator", `publish to "$JS.SNAPSHOT.RESTORE.SCUTE.`},
		{"creator", `publish to "$JS.API.STREAM.UPDATE.SCUTE"`},
	} {
		err := eventlog.RestoreExternal(t.Context(), eventlog.ExternalOptions{URL: strings.Replace(srv.ClientURL(), "//", "//"+c.user+":x@", 1)}, generatedLog(30))
		if !errors.Is(err, eventlog.ErrPermission) || !strings.Contains(err.Error(), c.lacks) {
			t.Errorf("RestoreExternal as %s = %v, want %s", c.user, err, c.lacks)
		}
	}
}
