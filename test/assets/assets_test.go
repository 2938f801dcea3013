package assets

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFindHonoursTheEnvironment(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(EnvAssets, dir)
	if _, err := Find(t.Context(), t.Output()); err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "unset "+EnvAssets) {
		t.Errorf("an empty folder: %v, want an error with the folder and the remedy", err)
	}
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Find(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	want := Binaries{
		Etcd: filepath.Join(dir, "etcd"), APIServer: filepath.Join(dir, "kube-apiserver"),
		ControllerManager: filepath.Join(dir, "kube-controller-manager"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestLdflagsStampKubernetes(t *testing.T) {
	got := ldflags(apiServer, "v1.36.3")
	for _, want := range []string{"version.gitVersion=v1.36.3", "version.gitMajor=1", "version.gitMinor=36"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
	if got := ldflags(etcd, "v3.6.8"); got != "-s -w" {
		t.Errorf("etcd is built with %q", got)
	}
}
