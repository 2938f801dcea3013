package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
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
		if len(words) > 2 && slices.Contains([]string{"also", "first", "only"}, words[1]) {
			words = slices.Delete(words, 1, 2)
		}
		if len(words) > 1 && words[0] == f.Name.Name && verb(words[1]) {
			continue
		}
		findings = append(findings, fmt.Sprintf("%s:%d: %s: begin the comment with %q and a verb in the third person other than is and has, for example returns, reports whether, records, waits until",
			name, files.Position(f.Pos()).Line, f.Name.Name, f.Name.Name))
	}
	return findings
}

// maxCommentColumns is the widest line of a comment, with tabs of four columns.
const maxCommentColumns = 120

// TestCommentWidth checks that no line of a comment is too wide, except for preformatted text and directives.
func TestCommentWidth(t *testing.T) {
	for _, path := range written(t, root) {
		if filepath.Ext(path) != ".go" {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			if isTooWide(line) {
				t.Errorf("%s:%d: wrap the comment at %d columns", path, i+1, maxCommentColumns)
			}
		}
	}
}

// TestCommentWidthFails checks which lines are too wide.
func TestCommentWidthFails(t *testing.T) {
	words := strings.Repeat("word ", 30)
	for line, want := range map[string]bool{
		"// " + words: true, "\t// " + words: true, "\t" + words: false, "//\t" + words: false, "//   - " + words: false,
		"// +kubebuilder:" + words: false, "//go:" + words: false, "// short": false,
	} {
		if isTooWide(line) != want {
			t.Errorf("isTooWide(%q) = %t", line, !want)
		}
	}
}

func isTooWide(line string) bool {
	text, isComment := strings.CutPrefix(strings.TrimLeft(line, "\t"), "// ")
	columns := len([]rune(strings.ReplaceAll(line, "\t", "    ")))
	return isComment && columns > maxCommentColumns && !strings.HasPrefix(text, " ") && !strings.HasPrefix(text, "+")
}

// verb reports whether a word may be the verb of a function's comment: in the third person, and not on the list of
// vague verbs.
func verb(word string) bool {
	word = strings.Trim(word, ".,:;")
	return strings.HasSuffix(word, "s") && !slices.Contains([]string{"is", "has", "was", "says", "tells", "hears", "gives", "takes", "this", "its", "as"}, word)
}
