package docs_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// casesScript covers every case of clusterctl's tests. caseOf precedes the name of a case.
const (
	casesScript = root + "/mover/testdata/graph/clusterctl.txt"
	caseOf      = "# clusterctl: "
)

// TestEveryCaseOfClusterctlHasAnAnswer checks that the script has every case, as a new version of Cluster API may add
// cases of what is moved.
func TestEveryCaseOfClusterctlHasAnAnswer(t *testing.T) {
	script, err := os.ReadFile(casesScript)
	if err != nil {
		t.Fatal(err)
	}
	known := make(map[string]bool)
	for line := range strings.Lines(string(script)) {
		if name, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), caseOf); ok {
			known[name] = true
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/cluster-api")
	cmd.Dir = root
	dir, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	theirs := 0
	for _, file := range []string{"objectgraph_test.go", "mover_test.go"} {
		for _, name := range cases(t, filepath.Join(string(bytes.TrimSpace(dir)), "cmd/clusterctl/client/cluster", file)) {
			if theirs++; !known[name] {
				t.Errorf("%s has the case %q, but %s does not", file, name, casesScript)
			}
		}
	}
	if theirs < 100 {
		t.Errorf("found %d cases, want at least 100: has their format changed?", theirs)
	}
}

// cases returns the names of the cases in a test file, which are the values of its fields "name".
func cases(t *testing.T, path string) (names []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		field, ok := n.(*ast.KeyValueExpr)
		if !ok {
			return true
		}
		key, isKey := field.Key.(*ast.Ident)
		text, isText := field.Value.(*ast.BasicLit)
		if isKey && isText && key.Name == "name" && text.Kind == token.STRING {
			name, err := strconv.Unquote(text.Value)
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, name)
		}
		return true
	})
	return names
}
