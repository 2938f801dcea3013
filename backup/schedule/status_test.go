package schedule

import "testing"

func TestLastBackupIsCounted(t *testing.T) {
	for want, kept := range map[string]KeptBackup{
		"; the last backup has 27 objects of 1 cluster":  {Backup: Backup{Objects: 27}, Clusters: 1},
		"; the last backup has 54 objects of 2 clusters": {Backup: Backup{Objects: 54}, Clusters: 2},
	} {
		if got := lastBackupText(&State{Kept: []KeptBackup{kept}}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
