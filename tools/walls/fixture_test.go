package walls_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// outside lists the other modules that walls name. The fixture replaces each with an empty module, so that nothing is
// downloaded or compiled.
var outside = []string{
	"github.com/nats-io/nats-server",
	"github.com/nats-io/nats.go",
	"github.com/pkg/errors",
	"k8s.io/apimachinery",
	"k8s.io/client-go",
	"sigs.k8s.io/controller-runtime",
	"sigs.k8s.io/yaml",
}

// fixture is a module scute.dev with only violations and permitted imports.
type fixture struct {
	dir   string
	lines map[position]wall
}

// position is the position of a wall's import or use in the fixture.
type position struct {
	file string
	line int
}

func newFixture(t *testing.T, walls []wall) fixture {
	t.Helper()
	f := fixture{dir: t.TempDir(), lines: map[position]wall{}}

	config, err := os.ReadFile("../../.golangci.yml")
	if err != nil {
		t.Fatal(err)
	}
	f.write(t, ".golangci.yml", string(config))

	gomod := "module scute.dev\n\ngo 1.26.0\n"
	for _, module := range outside {
		gomod += fmt.Sprintf("\nrequire %s v0.0.0\n\nreplace %[1]s => ./outside/%[1]s\n", module)
		f.write(t, path.Join("outside", module, "go.mod"), "module "+module+"\n\ngo 1.26.0\n")
	}
	f.write(t, "go.mod", gomod)

	files := map[string][]wall{}
	for _, w := range walls {
		files[w.file] = append(files[w.file], w)
		f.writeTarget(t, w.target)
	}
	for file, walls := range files {
		f.writeSource(t, file, walls)
	}
	return f
}

// writeSource writes a file with one line for each of its walls, and records their lines.
func (f fixture) writeSource(t *testing.T, file string, walls []wall) {
	t.Helper()
	lines := []string{"package " + packageName(file)}
	used := []string{"context", "time"} // packages that walls may use without their path
	for _, w := range walls {
		if pkg, _, ok := use(w.target); ok && !slices.Contains(used, pkg) {
			used = append(used, pkg)
		}
	}
	for _, pkg := range used {
		lines = append(lines, fmt.Sprintf("import %q", pkg))
	}
	imports := len(lines)
	lines = append(lines, "var _ context.Context", "var _ time.Time")
	slices.SortStableFunc(walls, func(a, b wall) int { // imports first
		return strings.Count(a.target, "uses ") - strings.Count(b.target, "uses ")
	})
	for _, w := range walls {
		if used, ok := strings.CutPrefix(w.target, "uses "); ok {
			lines = append(lines, "var _ = "+path.Base(used))
			f.lines[position{file, len(lines)}] = w
		} else {
			lines = slices.Insert(lines, imports, fmt.Sprintf("import _ %q", w.target))
			imports++
			f.lines[position{file, imports}] = w
		}
	}
	f.write(t, file, strings.Join(lines, "\n")+"\n")
}

// writeTarget writes the empty package that a wall imports.
func (f fixture) writeTarget(t *testing.T, target string) {
	t.Helper()
	if pkg, name, ok := use(target); ok && strings.Contains(pkg, "/") {
		f.write(t, path.Join("outside", pkg, name+".go"), "package "+path.Base(pkg)+"\n\nvar "+name+" int\n")
		return
	}
	if within, ok := strings.CutPrefix(target, "scute.dev/"); ok {
		f.write(t, path.Join(within, "leaf.go"), "package "+path.Base(within)+"\n")
		return
	}
	for _, module := range outside {
		if target == module || strings.HasPrefix(target, module+"/") {
			name := path.Base(target)
			if !token.IsIdentifier(name) {
				name = "leaf"
			}
			f.write(t, path.Join("outside", target, "leaf.go"), "package "+name+"\n")
		}
	}
}

// use splits the target of a wall that forbids or permits a use.
func use(target string) (pkg, name string, ok bool) {
	used, ok := strings.CutPrefix(target, "uses ")
	dot := strings.LastIndex(used, ".")
	if !ok || dot < 0 {
		return "", "", false
	}
	return used[:dot], used[dot+1:], true
}

func (f fixture) write(t *testing.T, name, content string) {
	t.Helper()
	name = filepath.Join(f.dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// lint runs the linters that enforce the walls on the fixture, and returns the walls that they reject.
func (f fixture) lint(t *testing.T) map[wall]bool {
	t.Helper()
	linter, err := filepath.Abs("../../bin/golangci-lint")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(linter); err != nil {
		t.Fatalf("the linter is missing: %v; `make lint` builds it", err)
	}
	cmd := exec.CommandContext(t.Context(), linter, "run", "--enable-only=depguard,forbidigo",
		"--output.json.path=stdout", "--show-stats=false", "./...")
	cmd.Dir = f.dir
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=-mod=mod", "GOLANGCI_LINT_CACHE="+t.TempDir())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("running the linter: %v", err)
	}

	var report struct {
		Issues []struct {
			FromLinter, Text string
			Pos              struct {
				Filename string
				Line     int
			}
		}
	}
	if err := json.Unmarshal(stdout, &report); err != nil {
		t.Fatalf("reading the linter's report: %v\n%s%s", err, stdout, stderr.String())
	}
	rejected := map[wall]bool{}
	for _, issue := range report.Issues {
		w, ok := f.lines[position{filepath.ToSlash(issue.Pos.Filename), issue.Pos.Line}]
		if !ok {
			t.Errorf("%s:%d: %s: %s: not the line of a wall", issue.Pos.Filename, issue.Pos.Line, issue.FromLinter, issue.Text)
		}
		rejected[w] = true
	}
	return rejected
}

// packageName returns the package name of a file, which is that of its folder.
func packageName(file string) string {
	return path.Base(path.Dir(file))
}
