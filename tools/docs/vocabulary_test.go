package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestVocabulary checks the words in comments and messages of Go files, and in Markdown, for the paths in
// testdata/vocabulary.txt.
func TestVocabulary(t *testing.T) {
	v := newVocabulary(t)
	for _, entry := range readLines(t, "testdata/vocabulary.txt") {
		for _, path := range written(t, filepath.Join(root, entry)) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			name, err := filepath.Rel(root, path)
			if err != nil {
				t.Fatal(err)
			}
			for _, finding := range v.read(t, name, text) {
				t.Error(finding)
			}
		}
	}
}

// TestVocabularyFails checks that listed words are found, and that code and stored names are ignored.
func TestVocabularyFails(t *testing.T) {
	v := newVocabulary(t)
	want := []string{
		`vocabulary.go:1: "stands": write is`,
		`vocabulary.go:7: "mended": write fixed`,
		`vocabulary.go:7: "whoever": write the user, the client, the caller`,
		`vocabulary.go:15: "goes on": write continues`,
		`vocabulary.md:3: "goes on": write continues`,
		`vocabulary.md:9: "veteran": write older, healthy machine`,
		`vocabulary.md:11: "goes on": write continues`,
	}
	var got []string
	for _, name := range []string{"vocabulary.go", "vocabulary.md"} {
		text, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, v.read(t, name, text)...)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

// vocabulary finds listed words and their replacements.
type vocabulary struct {
	words   *regexp.Regexp
	instead map[string]string
	allowed []string // "FILE: part of a line"
}

func newVocabulary(t *testing.T) *vocabulary {
	t.Helper()
	v := &vocabulary{instead: map[string]string{}, allowed: readLines(t, "testdata/allowed.txt")}
	var words []string
	for _, line := range readLines(t, "testdata/words.txt") {
		word, instead, ok := strings.Cut(line, ": ")
		if !ok {
			t.Fatalf("testdata/words.txt: got %q, want `WORD: REPLACEMENT`", line)
		}
		v.instead[word] = instead
		words = append(words, "(?i:"+regexp.QuoteMeta(word[:1])+")"+strings.ReplaceAll(regexp.QuoteMeta(word[1:]), " ", `(?: +| *\n *)`))
	}
	v.words = regexp.MustCompile(`\b(` + strings.Join(words, "|") + `)\b`)
	return v
}

// read returns the findings in one file, in the form `FILE:LINE: "WORD": write REPLACEMENT`.
func (v *vocabulary) read(t *testing.T, name string, text []byte) []string {
	t.Helper()
	var found []string
	look := func(line int, prose string) {
		lines := strings.Split(prose, "\n")
		for _, at := range v.words.FindAllStringIndex(prose, -1) {
			n := strings.Count(prose[:at[0]], "\n")
			word := strings.Join(strings.Fields(prose[at[0]:at[1]]), " ")
			if !v.allows(name, lines[n]) {
				found = append(found, fmt.Sprintf("%s:%d: %q: write %s", name, line+n, word, v.instead[strings.ToLower(word)]))
			}
		}
	}
	if filepath.Ext(name) == ".md" {
		readMarkdown(text, look)
	} else {
		readGo(t, name, text, look)
	}
	return found
}

func (v *vocabulary) allows(name, line string) bool {
	for _, entry := range v.allowed {
		file, part, _ := strings.Cut(entry, ": ")
		if file == filepath.ToSlash(name) && strings.Contains(line, part) {
			return true
		}
	}
	return false
}

// readMarkdown calls look with the text outside of code.
func readMarkdown(text []byte, look func(int, string)) {
	lines, block := strings.Split(string(text), "\n"), false
	for n, line := range lines {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		block = block != fence
		if block || fence {
			line = ""
		}
		lines[n] = code.ReplaceAllString(line, "")
	}
	look(1, strings.Join(lines, "\n"))
}

// readGo calls look with each comment and each message. A message is a string with a space that is not a struct tag,
// because a string without spaces may be a stored name or value. Strings in tests are ignored.
func readGo(t *testing.T, name string, text []byte, look func(int, string)) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range file.Comments {
		var lines []string
		for n, comment := range group.List {
			lines = append(lines, commented(n, comment.Text))
		}
		look(files.Position(group.Pos()).Line, strings.Join(lines, "\n"))
	}
	if strings.HasSuffix(name, "_test.go") {
		return
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			return n.Tag == nil
		case *ast.BasicLit:
			if s, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil && strings.Contains(s, " ") {
				look(files.Position(n.Pos()).Line, s)
			}
		}
		return true
	})
}

// commented returns line n of a comment, without the identifier at the beginning of the first line.
func commented(n int, text string) string {
	text = strings.TrimLeft(text, "/ ")
	if n > 0 {
		return text
	}
	_, rest, _ := strings.Cut(text, " ")
	return rest
}

// written returns the Go and Markdown files at or below a path, without generated ones.
func written(t *testing.T, path string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(path, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == "testdata":
			return filepath.SkipDir
		case filepath.Ext(path) == ".md", filepath.Ext(path) == ".go" && !strings.HasPrefix(entry.Name(), "zz_"):
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// readLines returns the lines of a file without comments and empty lines.
func readLines(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines
}
