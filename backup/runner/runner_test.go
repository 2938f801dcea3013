package runner

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"scute.dev/backup/store"
	"scute.dev/mover"
	"scute.dev/mover/archive"
	"scute.dev/mover/transfer"
)

// TestProblems checks that each problem names the field of the resource and what to do.
func TestProblems(t *testing.T) {
	for _, c := range []struct {
		err           error
		reason, field string
		says          []string
	}{
		{&store.Error{Reason: "CredentialsRefused", Field: store.FieldCredentials, Message: "refused", Next: "correct them"}, "CredentialsRefused", "spec.destination.s3.credentialsSecretRef", []string{"refused"}},
		{&store.Error{Reason: "BucketRefused", Field: store.FieldBucket, Message: "none", Next: "make it"}, "BucketRefused", "spec.destination.s3.bucket", nil},
		{&store.Error{Reason: "VolumeFailed", Field: store.FieldVolume, Message: "full", Next: "look"}, "VolumeFailed", "spec.destination.volume", nil},
		{errors.Join(errTimeout, &store.Error{Reason: "StoreTooSlow", Field: store.FieldEndpoint, Message: "slow", Next: "look"}), "TimedOut", "spec.timeout", []string{"slow"}},
		{
			&transfer.RefusedError{Findings: []mover.Finding{
				{Severity: mover.Warning, Field: "w", Message: "warning"},
				{Severity: mover.Error, Field: "Machine fleet/a", Message: "it is being deleted", Remedy: "wait"},
				{Severity: mover.Error, Field: "b", Message: "b"},
				{Severity: mover.Error, Field: "c", Message: "c"},
				{Severity: mover.Error, Field: "d", Message: "d"},
			}}, "Refused", "spec.clusters", []string{"Machine fleet/a: it is being deleted", "and 1 more"},
		},
		{&transfer.RefusedError{Findings: []mover.Finding{{Severity: mover.Error, Field: "--all", Message: "there are none", Remedy: "-n"}}}, "Refused", "spec.clusters", []string{"there are none"}},
		{fmt.Errorf("writing a: %w: it needs more than 1 MiB", archive.ErrTooLarge), "TooLarge", "spec.clusters", []string{"more than 1 MiB"}},
		{errors.New("anything"), "BackupFailed", "", []string{"anything"}},
	} {
		p := ProblemOf(c.err)
		if p.Reason != c.reason || p.Field != c.field || p.Next == "" {
			t.Errorf("ProblemOf(%v) = %+v", c.err, p)
		}
		for _, part := range c.says {
			if !strings.Contains(p.Message, part) {
				t.Errorf("%v: message does not contain %q: %s", c.err, part, p.Message)
			}
		}
		if text := p.Message + p.Next; strings.Contains(text, "--all") || strings.Contains(text, "-n") {
			t.Errorf("%v: the problem mentions flags of scutectl: %+v", c.err, p)
		}
		if strings.Contains(p.Message, "warning") {
			t.Errorf("a warning is reported as an error: %s", p.Message)
		}
	}
}
