package docs_test

import (
	"bufio"
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

// TestGuides checks that the files, identifiers, tests and targets that docs/guides names exist.
func TestGuides(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root, "docs/guides/*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("docs/guides has no pages: %v", err)
	}
	declared := declarations(t)
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, finding := range unknown(t, declared, filepath.Base(page), text) {
			t.Error(finding)
		}
	}
}

// TestRecord checks that each defect in docs/record.md names a test or a script that exists.
func TestRecord(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/record.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, finding := range unknown(t, declarations(t), "record.md", text) {
		t.Error(finding)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "| 20") && !strings.HasSuffix(line, "` |\n") {
			t.Errorf("no test is named in %s", line)
		}
	}
}

// TestProviders checks that the names in docs/providers.md exist. A c is the context of a step.
func TestProviders(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/providers.md"))
	if err != nil {
		t.Fatal(err)
	}
	text, _, _ = bytes.Cut(text, []byte("\n## Providers of Cluster API")) // its names are of Cluster API's packages
	text = bytes.ReplaceAll(text, []byte("`c."), []byte("`provider.Context."))
	for _, finding := range unknown(t, declarations(t), "providers.md", text) {
		t.Error(finding)
	}
}

// TestDesign checks that the files that docs/design names exist, and contain the names that the pages attribute to
// them.
func TestDesign(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root, "docs/design/*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("docs/design has no pages: %v", err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, finding := range misplaced(filepath.Base(page), text) {
			t.Error(finding)
		}
	}
}

// TestDesignFails checks that missing files and names are found, and that annotations and folders are ignored.
func TestDesignFails(t *testing.T) {
	text := []byte("`NewCatalog` in `mover/catalog.go`, `scute.dev/move`, `mover/runner`\n`Missing` in `mover/catalog.go`, `mover/missing.go`\n")
	want := []string{"page.md:2: no file mover/missing.go", "page.md:2: mover/catalog.go has no Missing"}
	if diff := cmp.Diff(want, misplaced("page.md", text)); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

var (
	// path matches a Go file, or a path that may exist in the tree.
	path = regexp.MustCompile("`([a-z0-9_-]+(?:/[\\w.-]+)+)`")
	// within matches a name and the file that contains it.
	within = regexp.MustCompile("`(\\w+)` in `([\\w/.-]+\\.go)`")
)

// misplaced returns the files, and the names in files, on a page that do not exist, in the form `PAGE:LINE: FINDING`.
func misplaced(page string, text []byte) []string {
	var found []string
	for n, line := range strings.Split(string(text), "\n") {
		for _, m := range path.FindAllStringSubmatch(line, -1) {
			folder, _, _ := strings.Cut(m[1], "/")
			_, outside := os.Stat(filepath.Join(root, folder))
			if _, err := os.Stat(filepath.Join(root, m[1])); err != nil && (outside == nil || filepath.Ext(m[1]) == ".go") {
				found = append(found, fmt.Sprintf("%s:%d: no file %s", page, n+1, m[1]))
			}
		}
		for _, m := range within.FindAllStringSubmatch(line, -1) {
			source, err := os.ReadFile(filepath.Join(root, m[2]))
			if err == nil && !regexp.MustCompile(`\b`+m[1]+`\b`).Match(source) {
				found = append(found, fmt.Sprintf("%s:%d: %s has no %s", page, n+1, m[2], m[1]))
			}
		}
	}
	return found
}

// TestGuidesFail checks that names that do not exist are found.
func TestGuidesFail(t *testing.T) {
	text, err := os.ReadFile("testdata/guide.md.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"guide.md:3: no file workflow/task/missing.go",
		"guide.md:4: package task declares no Missing",
		"guide.md:5: package task declares no Kind.Missing",
		"guide.md:6: no package is called missing",
		"guide.md:11: workflow/task has no TestMissing",
		"guide.md:12: the Makefile has no target missing",
	}
	if diff := cmp.Diff(want, unknown(t, declarations(t), "guide.md", text)); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

var (
	// named matches PACKAGE.NAME and PACKAGE.TYPE.MEMBER, followed by type parameters, arguments or a literal.
	named = regexp.MustCompile(`^([a-z]\w*)\.(\w+(?:\.\w+)?)(?:[\[({].*)?$`)
	// goTest and target match commands, also in code blocks.
	goTest = regexp.MustCompile(`(?:cd (test|tools) && )?go test \./(\S+)(?: -run (\w+))?`)
	target = regexp.MustCompile(`^(?:.*` + "`" + `)?make ([a-z-]+)`)
)

// unknown returns the names on a page that do not exist in the tree, in the form `PAGE:LINE: FINDING`.
func unknown(t *testing.T, declared map[string]map[string]bool, page string, text []byte) []string {
	t.Helper()
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	lines, block := bufio.NewScanner(bytes.NewReader(text)), false
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		report := func(format string, args ...any) {
			found = append(found, fmt.Sprintf("%s:%d: ", page, n)+fmt.Sprintf(format, args...))
		}
		if strings.HasPrefix(line, "```") {
			block = !block
		}
		if m := goTest.FindStringSubmatch(line); m != nil && m[3] != "" && !declared[filepath.Join(m[1], m[2])][m[3]] {
			report("%s has no %s", filepath.Join(m[1], m[2]), m[3])
		}
		if m := target.FindStringSubmatch(line); m != nil && !bytes.Contains(makefile, []byte("\n"+m[1]+":")) {
			report("the Makefile has no target %s", m[1])
		}
		if block {
			continue
		}
		for _, span := range code.FindAllString(line, -1) {
			if finding := missing(declared, strings.Trim(span, "`")); finding != "" {
				report("%s", finding)
			}
		}
	}
	return found
}

// missing returns which file or identifier in backticks does not exist, or "".
func missing(declared map[string]map[string]bool, span string) string {
	if folder, _, ok := strings.Cut(span, "/"); ok && !strings.ContainsAny(span, " <*:") && !strings.HasPrefix(folder, "scute.dev") { // not an annotation
		if _, err := os.Stat(filepath.Join(root, span)); err != nil {
			return "no file " + span
		}
		return ""
	}
	m := named.FindStringSubmatch(span)
	if m == nil || m[2] == "go" { // a file without its folder
		return ""
	}
	names, ok := declared[m[1]]
	switch {
	case !ok && unicode.IsUpper(rune(m[2][0])):
		return "no package is called " + m[1]
	case ok && !names[m[2]]:
		return fmt.Sprintf("package %s declares no %s", m[1], m[2])
	default:
		return ""
	}
}

// declarations returns the names that the packages of the repository declare, including tests, by package name and by
// folder. A field or method is TYPE.NAME.
func declarations(t *testing.T) map[string]map[string]bool {
	t.Helper()
	declared := make(map[string]map[string]bool)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), ".")):
			return filepath.SkipDir
		case filepath.Ext(path) != ".go":
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		for _, in := range []string{strings.TrimSuffix(file.Name.Name, "_test"), filepath.ToSlash(folder)} {
			if declared[in] == nil {
				declared[in] = make(map[string]bool)
			}
			for _, decl := range file.Decls {
				declare(declared[in], decl)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return declared
}

func declare(names map[string]bool, decl ast.Decl) {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		name := decl.Name.Name
		if decl.Recv != nil {
			name = receiver(decl.Recv.List[0].Type) + "." + name
		}
		names[name] = true
	case *ast.GenDecl:
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					names[name.Name] = true
				}
			case *ast.TypeSpec:
				names[spec.Name.Name] = true
				members(names, spec)
			}
		}
	}
}

// receiver returns the name of a method's type.
func receiver(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.StarExpr:
		return receiver(of.X)
	case *ast.IndexExpr:
		return receiver(of.X)
	case *ast.IndexListExpr:
		return receiver(of.X)
	case *ast.Ident:
		return of.Name
	default:
		return ""
	}
}

// members adds the fields of a struct or the methods of an interface.
func members(names map[string]bool, spec *ast.TypeSpec) {
	var list *ast.FieldList
	switch of := spec.Type.(type) {
	case *ast.StructType:
		list = of.Fields
	case *ast.InterfaceType:
		list = of.Methods
	default:
		return
	}
	for _, field := range list.List {
		for _, name := range field.Names {
			names[spec.Name.Name+"."+name.Name] = true
		}
	}
}
