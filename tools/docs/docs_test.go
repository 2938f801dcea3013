package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

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

// TestSharedModulesHaveOneVersion: a package that both modules build is compiled once only if its module, and each module
// below it, has the same version in both.
func TestSharedModulesHaveOneVersion(t *testing.T) {
	versions := map[string]string{}
	for _, require := range parse(t, "go.mod").Require {
		versions[require.Mod.Path] = require.Mod.Version
	}
	for _, require := range parse(t, "test/go.mod").Require {
		if of, shared := versions[require.Mod.Path]; shared && of != require.Mod.Version {
			t.Errorf("%s is %s in go.mod and %s in test/go.mod: `go get` the newer one in both", require.Mod.Path, of, require.Mod.Version)
		}
	}
}

// direct returns the modules that a go.mod requires directly, be it for an import or for a tool.
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

// link matches a Markdown link's target, without its anchor. Links to other sites have a colon.
var link = regexp.MustCompile(`\]\(([^)#:\s]+)(#[^)\s]*)?\)`)

// code matches what is in backticks: a regular expression there looks like a link.
var code = regexp.MustCompile("`[^`\n]*`")

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
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), match[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", path, match[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
