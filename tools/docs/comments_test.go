package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestComments checks that the comment of each function begins with its name and a verb in the third person.
func TestComments(t *testing.T) {
	for _, path := range written(t, root) {
		name, err := filepath.Rel(root, path)
		if err != nil {
			t.Fatal(err)
		}
		top, _, _ := strings.Cut(name, "/")
		if filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || slices.Contains([]string{"test", "tools", "bin"}, top) {
			continue
		}
		for _, finding := range comments(t, path, name) {
			t.Error(finding)
		}
	}
}

// TestCommentsFail checks that each form of a wrong comment is found.
func TestCommentsFail(t *testing.T) {
	got := comments(t, "testdata/comments.go.txt", "comments.go")
	if len(got) != 4 {
		t.Errorf("%d findings, want one for each function whose name begins with bad:\n%s", len(got), strings.Join(got, "\n"))
	}
	for _, finding := range got {
		if !strings.Contains(finding, ": bad") {
			t.Error(finding)
		}
	}
}

// comments returns the functions of a file whose comments do not begin with the name and a verb.
func comments(t *testing.T, path, name string) (findings []string) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	if ast.IsGenerated(file) {
		return nil
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Doc.Text() == "" { // no comment, or only a directive
			continue
		}
		words := strings.Fields(f.Doc.Text())
		if len(words) > 1 && words[0] == f.Name.Name && verb(words[1]) {
			continue
		}
		findings = append(findings, fmt.Sprintf("%s:%d: %s: begin the comment with %q and a verb, for example returns, reports whether, records, waits until",
			name, files.Position(f.Pos()).Line, f.Name.Name, f.Name.Name))
	}
	return findings
}

// verb reports whether a word may be the verb of a function's comment: in the third person, and not on the list of
// vague verbs.
func verb(word string) bool {
	word = strings.Trim(word, ".,:;")
	return strings.HasSuffix(word, "s") && !slices.Contains([]string{"is", "has", "was", "says", "tells", "hears", "gives", "takes", "this", "its", "as"}, word)
}
