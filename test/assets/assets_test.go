package assets

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestFindHonoursTheEnvironment(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(EnvAssets, dir)
	if _, err := Find(t.Context(), t.Output()); err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "unset "+EnvAssets) {
		t.Errorf("Find with an empty folder = %v, want an error with the folder and the remedy", err)
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

func TestStampOfKubernetes(t *testing.T) {
	got := stamp("v1.36.3")
	for _, want := range []string{"version.gitVersion=v1.36.3", "version.gitMajor=1", "version.gitMinor=36"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
}

func TestBinary(t *testing.T) {
	for program, want := range map[string]Program{"daemon": Daemon, "versitygw": Store} {
		if got := want.binary(); got != program {
			t.Errorf("the binary of %s is %q, want %q", want.pkg, got, program)
		}
	}
}

// TestProgress checks the progress of a build when the output of `go build -v` arrives in pieces.
func TestProgress(t *testing.T) {
	p := &progress{out: t.Output(), started: time.Now(), stop: func() {}, done: make(chan struct{}), total: 3}
	close(p.done)
	for _, piece := range []string{"go: downloading example.com/a v1.0.0\nexample.com/a/b\nexample", ".com/c\n# example.com/d\nd.go:1:1: syntax error\nlast"} {
		if n, err := p.Write([]byte(piece)); n != len(piece) || err != nil {
			t.Fatalf("Write(%q) = %d, %v", piece, n, err)
		}
	}
	if got, want := p.text(), "building  0:00  1 modules downloaded  2 of 3 packages  example.com/c"; got != want {
		t.Errorf("text = %q, want %q", got, want)
	}
	if got, want := p.close(), "# example.com/d\nd.go:1:1: syntax error\nlast"; got != want {
		t.Errorf("close = %q, want %q", got, want)
	}
}
