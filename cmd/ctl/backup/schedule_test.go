package backup

import (
	"slices"
	"strings"
	"testing"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/kit"
)

// TestWhereTo checks that the destination of backups is shown with its prefix.
func TestWhereTo(t *testing.T) {
	for prefix, want := range map[string]string{"": "s3://backups at https://s3.example.com", "north/fleet": "s3://backups/north/fleet at https://s3.example.com"} {
		b := &v1alpha1.BackupSchedule{}
		b.Spec.Destination.S3 = &v1alpha1.BackupS3{Bucket: "backups", Prefix: prefix, Endpoint: "https://s3.example.com"}
		if lines := describe(kit.View{}, b); !slices.ContainsFunc(lines, func(line string) bool { return strings.HasSuffix(line, want) }) {
			t.Errorf("prefix %q: no line ends with %q:\n%s", prefix, want, strings.Join(lines, "\n"))
		}
	}
}

// TestFollowed checks that get --watch prints a line for the phase of a schedule, and that no schedule counts as
// failed.
func TestFollowed(t *testing.T) {
	b, n := &v1alpha1.BackupSchedule{}, newNoun()
	b.Status.Phase, b.Status.Message, b.Status.Next = v1alpha1.BackupFailing, "the bucket is gone", "create it"
	if news := n.Updates(b); len(news) != 1 || news[0].Text != "Failing: the bucket is gone; next: create it" || n.HasFailed(b) {
		t.Errorf("Updates = %v", news)
	}
}

// TestNoControlSequences checks that names and schedules from a foreign log cannot control the terminal.
func TestNoControlSequences(t *testing.T) {
	b := &v1alpha1.BackupSchedule{}
	b.Namespace, b.Name, b.Spec.Schedule, b.Spec.TimeZone = "fleet", "a\x1b[31m", "0 3 * * *\x1b[31m", "Etc/UTC\x1b[31m"
	lines := append(describe(kit.View{}, b), row(kit.View{}, b).Cells...)
	if text := strings.Join(lines, "\n"); strings.Contains(text, "\x1b") {
		t.Errorf("got %q", text)
	}
}
