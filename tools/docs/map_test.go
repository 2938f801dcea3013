package docs_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const mapPage = root + "/docs/map.md"

//nolint:gochecknoglobals // a flag of tests
var writeMap = flag.Bool("map.write", false, "write docs/map.md from the first sentences of the packages' documentation")

// part is a section of docs/map.md. A package belongs to the first part that lists it or a folder above it.
type part struct {
	title   string
	folders []string
}

//nolint:gochecknoglobals // a table
var parts = []part{
	{"Floor 6: programs", []string{"cmd", "ui"}},
	{"Floor 5: controllers, and what the core does not need", []string{"controllers", "backup", "evidence", "export"}},
	{"Floor 4: workflows", []string{"workflow"}},
	{"Floor 3: moves", []string{"mover"}},
	{"Floor 2: what the domains share, and remediation", []string{"aggregate", "view", "remediator", "pause"}},
	{"Floor 1: the log, the resources, Kubernetes", []string{"eventlog", "api", "kube"}},
	{"Beside the floors", []string{"internal", "config"}},
	{"The module test: the real stack", []string{"test"}},
	{"The module tools", []string{"tools"}},
}

// TestMap checks that docs/map.md lists each package once, in the section of its floor, and no others.
func TestMap(t *testing.T) {
	packages := synopses(t)
	page, err := os.ReadFile(mapPage)
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(page), "\n## ")
	if *writeMap {
		if err := os.WriteFile(mapPage, []byte(head+tables(t, packages)), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	// Compare only the packages: the sentences may be outdated.
	bare := func(page string) []string {
		return regexp.MustCompile("(?m)^## .*|^\\| `[^`]*` \\|").FindAllString(page, -1)
	}
	if diff := cmp.Diff(bare(tables(t, packages)), bare(string(page))); diff != "" {
		t.Errorf("packages in docs/map.md differ from the tree: cd tools && go test ./docs -run TestMap -map.write (-tree +page):\n%s", diff)
	}
}

// tables returns the sections of the page.
func tables(t *testing.T, packages map[string]string) string {
	t.Helper()
	rows := make(map[string]string)
	for _, folder := range slices.Sorted(maps.Keys(packages)) {
		i := slices.IndexFunc(parts, func(p part) bool {
			return slices.ContainsFunc(p.folders, func(f string) bool { return folder == f || strings.HasPrefix(folder, f+"/") })
		})
		if i < 0 {
			t.Fatalf("package %s belongs to no part: add its folder to parts", folder)
		}
		rows[parts[i].title] += fmt.Sprintf("| `%s` | %s |\n", folder, packages[folder])
	}
	var page strings.Builder
	for _, p := range parts {
		fmt.Fprintf(&page, "\n## %s\n\n| package | what it is |\n|---|---|\n%s", p.title, rows[p.title])
	}
	return page.String()
}

// synopses returns the first sentence of the documentation of each package that has more than tests, by folder.
func synopses(t *testing.T) map[string]string {
	t.Helper()
	packages := make(map[string]string)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), ".")):
			return filepath.SkipDir
		case filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		if says := synopsis(file); says != "" || packages[filepath.ToSlash(folder)] == "" {
			packages[filepath.ToSlash(folder)] = says
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for folder, says := range packages {
		if says == "" {
			t.Errorf("package %s has no documentation", folder)
		}
	}
	return packages
}

// synopsis returns the first sentence without its leading "Package NAME" or "Command NAME".
func synopsis(file *ast.File) string {
	says := new(doc.Package).Synopsis(file.Doc.Text())
	says = regexp.MustCompile(`^((Package|Command) )?\w+ `).ReplaceAllString(says, "")
	return strings.ReplaceAll(strings.TrimRight(says, ":."), "|", `\|`)
}
