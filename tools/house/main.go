package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const module = "scute.dev/"

// house is the root module as its sources have it.
type house struct {
	root     string
	lines    map[string]int             // production lines by package
	exported map[string]map[string]bool // names by package
	used     map[string]map[string]bool // names by package, by others
	// mentioned are the names by package that an exported signature or field contains.
	mentioned map[string]map[string]bool
	imports   map[string]map[string]bool
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: house ROOT")
		os.Exit(2)
	}
	h := &house{
		root: os.Args[1], lines: make(map[string]int), exported: make(map[string]map[string]bool), mentioned: make(map[string]map[string]bool),
		used: make(map[string]map[string]bool), imports: make(map[string]map[string]bool),
	}
	if err := h.read(); err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(1)
	}
	if err := h.print(); err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(1)
	}
}

// read parses all Go files of the repository. Those of the modules test and tools, and tests, only use names.
func (h *house) read() error {
	return filepath.WalkDir(h.root, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if name := d.Name(); name == "testdata" || name == "bin" || name != ".." && strings.HasPrefix(name, ".") {
				return filepath.SkipDir
			}
			return nil
		case filepath.Ext(file) != ".go":
			return nil
		}
		rel, err := filepath.Rel(h.root, file)
		if err != nil {
			return err
		}
		return h.file(file, filepath.ToSlash(rel))
	})
}

func (h *house) file(file, rel string) error {
	source, err := os.ReadFile(file) //nolint:gosec // the repository's own file
	if err != nil {
		return err
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), file, source, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil {
		return err
	}
	pkg := path.Dir(rel)
	production := !strings.HasSuffix(rel, "_test.go") && !strings.HasPrefix(rel, "test/") && !strings.HasPrefix(rel, "tools/")
	if production {
		if !ast.IsGenerated(parsed) {
			h.lines[pkg] += bytes.Count(source, []byte("\n"))
		}
		for _, decl := range parsed.Decls {
			h.declares(pkg, decl)
			h.mentions(pkg, decl)
		}
	}
	h.uses(pkg, parsed, production)
	return nil
}

// declares notes the exported names of a declaration, without methods.
func (h *house) declares(pkg string, decl ast.Decl) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			add(h.exported, pkg, d.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				add(h.exported, pkg, s.Name)
			case *ast.ValueSpec:
				add(h.exported, pkg, s.Names...)
			}
		}
	}
}

// mentions notes the types in the signature of an exported function and in the exported fields of a struct: another
// package can have their values without their names.
func (h *house) mentions(pkg string, decl ast.Decl) {
	types := func(n ast.Node) {
		ast.Inspect(n, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr: // a type of another package
				return false
			case *ast.Ident:
				add(h.mentioned, pkg, n)
			}
			return true
		})
	}
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() {
			types(d.Type)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			s, ok := spec.(*ast.TypeSpec)
			if !ok || !s.Name.IsExported() {
				continue
			}
			ast.Inspect(s.Type, func(n ast.Node) bool {
				f, ok := n.(*ast.Field)
				if ok && (len(f.Names) == 0 || f.Names[0].IsExported()) {
					types(f.Type)
				}
				return !ok
			})
		}
	}
}

func add(to map[string]map[string]bool, pkg string, names ...*ast.Ident) {
	for _, name := range names {
		if !name.IsExported() {
			continue
		}
		if to[pkg] == nil {
			to[pkg] = make(map[string]bool)
		}
		to[pkg][name.Name] = true
	}
}

// uses notes the names of other packages that a file selects.
func (h *house) uses(pkg string, file *ast.File, production bool) {
	byName := make(map[string]string)
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if rest, ours := strings.CutPrefix(imported, module); err == nil && ours {
			name := path.Base(rest)
			if spec.Name != nil {
				name = spec.Name.Name
			}
			byName[name] = rest
			if production {
				if h.imports[pkg] == nil {
					h.imports[pkg] = make(map[string]bool)
				}
				h.imports[pkg][rest] = true
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && byName[x.Name] != "" && byName[x.Name] != pkg {
				add(h.used, byName[x.Name], s.Sel)
			}
		}
		return true
	})
}

func (h *house) print() error {
	floors, err := h.floors()
	if err != nil {
		return err
	}
	rooms := make(map[string]int)
	total := 0
	for pkg, n := range h.lines {
		room, _, _ := strings.Cut(pkg, "/")
		if room == "cmd" || room == "workflow" {
			room = strings.Join(strings.SplitN(pkg, "/", 3)[:min(2, strings.Count(pkg, "/")+1)], "/")
		}
		rooms[room] += n
		total += n
	}
	for _, room := range slices.SortedFunc(maps.Keys(rooms), func(a, b string) int { return cmp.Compare(rooms[b], rooms[a]) }) {
		fmt.Printf("%7d  %s\n", rooms[room], room)
	}
	exported, idle, hidden := 0, 0, 0
	for pkg, names := range h.exported {
		for name := range names {
			exported++
			if !h.used[pkg][name] && !strings.HasPrefix(pkg, "api/") {
				idle++
				if h.mentioned[pkg][name] {
					hidden++
				}
			}
		}
	}
	var up []string
	for from, to := range h.imports {
		for imported := range to {
			if floors[from] > 0 && floors[imported] > floors[from] {
				up = append(up, from+" -> "+imported)
			}
		}
	}
	slices.Sort(up)
	fmt.Printf("%7d  lines in %d packages\n%7d  exported names, %d of them (%.1f %%) not named in another package, %d of these in an exported signature\n%7d  imports of a higher floor\n",
		total, len(h.lines), exported, idle, 100*float64(idle)/float64(max(exported, 1)), hidden, len(up))
	for _, arrow := range up {
		fmt.Println("        ", arrow)
	}
	return h.walks()
}

// floors reads the floor of each package from docs/map.md; a package beside the floors has none.
func (h *house) floors() (map[string]int, error) {
	text, err := os.ReadFile(filepath.Join(h.root, "docs", "map.md"))
	if err != nil {
		return nil, err
	}
	out, floor := make(map[string]int), 0
	row := regexp.MustCompile("^\\| `([^`]+)` \\|")
	for line := range strings.Lines(string(text)) {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			floor = 0
			_, _ = fmt.Sscanf(title, "Floor %d", &floor)
		}
		if m := row.FindStringSubmatch(line); m != nil {
			out[m[1]] = floor
		}
	}
	return out, nil
}

// walks counts the files that each walk names.
func (h *house) walks() error {
	text, err := os.ReadFile(filepath.Join(h.root, "docs", "design", "walks.md"))
	if err != nil {
		return err
	}
	name := regexp.MustCompile("`[^`]*\\.go`")
	for _, walk := range strings.Split(string(text), "\n## ")[1:] {
		title, rest, _ := strings.Cut(walk, "\n")
		fmt.Printf("%7d  files: %s\n", len(name.FindAllString(rest, -1)), title)
	}
	return nil
}
