package docs_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/modfile"
)

const root = "../.."

func TestEveryDirectDependencyHasAReason(t *testing.T) {
	reasons, err := os.ReadFile(filepath.Join(root, "docs/dependencies.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, gomod := range []string{"go.mod", "test/go.mod", "test/thirdparty/go.mod", "tools/go.mod"} {
		for _, module := range direct(t, gomod) {
			if !regexp.MustCompile(`(^|\s)` + regexp.QuoteMeta(module) + `[\s,]`).Match(reasons) {
				t.Errorf("%s requires %s: give the reason in docs/dependencies.md", gomod, module)
			}
		}
	}
}

// TestSharedModulesHaveOneVersion checks that modules in both go.mod files have the same version, so that their
// packages are compiled only once.
func TestSharedModulesHaveOneVersion(t *testing.T) {
	versions := map[string]string{}
	for _, require := range parse(t, "go.mod").Require {
		versions[require.Mod.Path] = require.Mod.Version
	}
	for _, require := range parse(t, "test/go.mod").Require {
		if of, shared := versions[require.Mod.Path]; shared && of != require.Mod.Version {
			t.Errorf("%s has version %s in go.mod and %s in test/go.mod: `go get` the newer one in both", require.Mod.Path, of, require.Mod.Version)
		}
	}
}

// direct returns the modules that a go.mod requires directly, for an import or a tool.
func direct(t *testing.T, gomod string) []string {
	t.Helper()
	file := parse(t, gomod)
	var modules []string
	for _, require := range file.Require {
		module := require.Mod.Path
		ofTool := slices.ContainsFunc(file.Tool, func(tool *modfile.Tool) bool {
			return tool.Path == module || strings.HasPrefix(tool.Path, module+"/")
		})
		if (!require.Indirect || ofTool) && module != "scute.dev" {
			modules = append(modules, module)
		}
	}
	return modules
}

func parse(t *testing.T, gomod string) *modfile.File {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, gomod))
	if err != nil {
		t.Fatal(err)
	}
	file, err := modfile.Parse(gomod, text, nil)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// link matches the target of a Markdown link: a file, an anchor, or both. Links to other sites have a colon.
var link = regexp.MustCompile(`\]\(([^)#:\s]*)(?:#([^)\s]*))?\)`)

// code matches text in backticks, because a regular expression in it can look like a link.
var code = regexp.MustCompile("`[^`\n]*`")

// TestEveryRelativeLinkLeadsToAFile checks that relative links lead to existing files, and their anchors to headings.
func TestEveryRelativeLinkLeadsToAFile(t *testing.T) {
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "bin"):
			return filepath.SkipDir
		case filepath.Ext(path) != ".md":
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, match := range link.FindAllStringSubmatch(code.ReplaceAllString(string(text), ""), -1) {
			to := path
			if match[1] != "" {
				to = filepath.Join(filepath.Dir(path), match[1])
			}
			page, err := os.ReadFile(to)
			if _, missing := os.Stat(to); missing != nil {
				t.Errorf("%s links to %s, which does not exist", path, match[1])
			} else if err == nil && match[2] != "" && filepath.Ext(to) == ".md" && !slices.Contains(anchors(string(page)), match[2]) {
				t.Errorf("%s links to %s#%s, but no heading has this anchor", path, match[1], match[2])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

var (
	// fenced matches a code block, in which comments look like headings.
	fenced  = regexp.MustCompile("(?ms)^```.*?^```")
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.*?) *$`)
	// unslugged matches the characters of a heading that its anchor omits: punctuation, and the targets of links.
	unslugged = regexp.MustCompile(`\]\([^)]*\)|[^\p{L}\p{N} _-]`)
)

// anchors returns the anchors of a page's headings in the format of GitHub, which numbers repeated headings.
func anchors(page string) []string {
	var all []string
	seen := make(map[string]int)
	for _, match := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
		anchor := strings.ReplaceAll(strings.ToLower(unslugged.ReplaceAllString(match[1], "")), " ", "-")
		if n := seen[anchor]; n > 0 {
			all = append(all, fmt.Sprintf("%s-%d", anchor, n))
		} else {
			all = append(all, anchor)
		}
		seen[anchor]++
	}
	return all
}

func TestAnchors(t *testing.T) {
	got := anchors("# A `b` c\n```sh\n# no heading\n```\n## What, if?\n## [Link](x.md) of 1.2\n## What, if?\n")
	if diff := cmp.Diff([]string{"a-b-c", "what-if", "link-of-12", "what-if-1"}, got); diff != "" {
		t.Errorf("anchors (-want +got):\n%s", diff)
	}
}
