package drop_test

import (
	"path/filepath"
	"strings"
	"testing"

	"scute.dev/eventlog/backup"
	"scute.dev/eventlog/drop"
	"scute.dev/eventlog/embedded"
)

// TestArchiveOfABranch: an archive that a copy of the log continued is refused, though it has all that would be dropped: no backup of this log could be made
// any more, neither there nor in a new folder.
func TestArchiveOfABranch(t *testing.T) {
	for name, more := range map[string]int{"longer": 0, "as long": 1} {
		t.Run(name, func(t *testing.T) {
			archive, copied := filepath.Join(t.TempDir(), "archive"), t.TempDir()
			l := open(t, t.TempDir())
			fill(t, l)
			back(t, l, archive)
			m, err := backup.Verify(t.Context(), archive, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := embedded.Restore(t.Context(), embedded.Options{Dir: copied}, backup.Restored(archive, m, nil, nil), embedded.RestoreOptions{}); err != nil {
				t.Fatal(err)
			}
			branch := open(t, copied)
			add(t, branch, "branch", "1", 0)
			back(t, branch, archive)
			for range more {
				add(t, l, "trunk", "1", 0)
			}
			_, err = drop.Prepare(t.Context(), l, archive, 2, newJudge, nil)
			if err == nil || !strings.Contains(err.Error(), "continued in another way") {
				t.Fatalf("the archive of a branch: %v", err)
			}
			own := filepath.Join(t.TempDir(), "own")
			back(t, l, own)
			mustDrop(t, l, own, 2)
			back(t, l, own)
		})
	}
}
