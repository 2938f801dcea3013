package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
)

// types are the exported types of a package.
type types struct {
	specs map[string]*ast.TypeSpec
	docs  map[string]string
	// values are the constants of each type, with their comments.
	values map[string][]string
}

func parse(dir string) (*types, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	t := &types{specs: make(map[string]*ast.TypeSpec), docs: make(map[string]string), values: make(map[string][]string)}
	set := token.NewFileSet()
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(filepath.Base(path), "zz_generated") {
			continue
		}
		file, err := parser.ParseFile(set, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, decl := range file.Decls {
			switch gen, ok := decl.(*ast.GenDecl); {
			case ok && gen.Tok == token.TYPE:
				t.add(gen)
			case ok && gen.Tok == token.CONST:
				t.addValues(gen)
			}
		}
	}
	return t, nil
}

// take adds the types of another package, and renames one of them.
func (t *types) take(from *types, name, as string) {
	for of, spec := range from.specs {
		doc, key := from.docs[of], of
		if of == name {
			doc, key = strings.Replace(doc, name, as, 1), as
		}
		t.specs[key], t.docs[key], t.values[key] = spec, doc, from.values[of]
	}
}

func (t *types) add(gen *ast.GenDecl) {
	for _, spec := range gen.Specs {
		ts, ok := spec.(*ast.TypeSpec)
		if !ok || !ts.Name.IsExported() {
			continue
		}
		doc := ts.Doc
		if doc == nil {
			doc = gen.Doc
		}
		t.specs[ts.Name.Name], t.docs[ts.Name.Name] = ts, prose(doc)
	}
}

func (t *types) addValues(gen *ast.GenDecl) {
	for _, spec := range gen.Specs {
		v, ok := spec.(*ast.ValueSpec)
		if !ok || len(v.Values) != 1 {
			continue
		}
		of, named := v.Type.(*ast.Ident)
		literal, text := v.Values[0].(*ast.BasicLit)
		if !named || !text || literal.Kind != token.STRING {
			continue
		}
		value := "`" + strings.Trim(literal.Value, `"`) + "`"
		if said := strings.TrimPrefix(cell(v.Doc.Text()), v.Names[0].Name+": "); said != "" {
			value += ": " + said
		}
		t.values[of.Name] = append(t.values[of.Name], value)
	}
}

// prose returns a comment without markers.
func prose(doc *ast.CommentGroup) string {
	var lines []string
	for line := range strings.Lines(doc.Text()) {
		if line = strings.TrimRight(line, "\n"); !strings.HasPrefix(strings.TrimSpace(line), "+") {
			lines = append(lines, line)
		}
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

// field is a field of a struct in the form of a manifest.
type field struct{ name, kind, doc, required string }

// write writes the documentation of types, and then of the types that they refer to.
func (t *types) write(w io.Writer, roots []string, titles map[string]string) {
	seen := make(map[string]bool)
	var later []string
	tell := func(name, title string) {
		seen[name] = true
		doc := t.docs[name]
		doc = strings.TrimSpace(strings.Replace(doc, name+" are the inputs of "+title+".", "", 1))
		fmt.Fprintf(w, "\n### %s\n", title)
		if doc != "" {
			fmt.Fprintf(w, "\n%s\n", doc)
		}
		if len(t.values[name]) > 0 && !strings.Contains(doc, "\n") {
			fmt.Fprint(w, "\n")
			for _, value := range t.values[name] {
				fmt.Fprintf(w, "- %s\n", value)
			}
		}
		fields, refs := t.fields(name)
		if len(fields) > 0 {
			fmt.Fprint(w, "\n| field | type | |\n|---|---|---|\n")
		}
		for _, f := range fields {
			fmt.Fprintf(w, "| %s | %s | %s |\n", f.required, f.kind, f.doc)
		}
		later = append(later, refs...)
	}
	for _, name := range roots {
		tell(name, titles[name])
	}
	for len(later) > 0 {
		name := later[0]
		later = later[1:]
		if !seen[name] {
			tell(name, name)
		}
	}
}

// fields returns the fields of a type, and the types of the package that they refer to.
func (t *types) fields(name string) (fields []field, refs []string) {
	s, ok := t.specs[name].Type.(*ast.StructType)
	if !ok {
		return nil, nil
	}
	for _, f := range s.Fields.List {
		tag := ""
		if f.Tag != nil {
			if unquoted, err := strconv.Unquote(f.Tag.Value); err == nil {
				tag = reflect.StructTag(unquoted).Get("json")
			}
		}
		key, options, _ := strings.Cut(tag, ",")
		if len(f.Names) == 0 && (key == "" || strings.Contains(options, "inline")) {
			if ident, ok := f.Type.(*ast.Ident); ok && t.specs[ident.Name] != nil {
				inner, more := t.fields(ident.Name)
				fields, refs = append(fields, inner...), append(refs, more...)
			}
			continue
		}
		if key == "" || key == "-" {
			continue
		}
		kind, more := t.kind(f.Type)
		refs = append(refs, more...)
		out := field{name: key, kind: kind, doc: cell(prose(f.Doc)), required: "`" + key + "`"}
		if !strings.Contains(options, "omit") && !strings.Contains(f.Doc.Text(), "+optional") {
			out.required = "**`" + key + "`**"
		}
		fields = append(fields, out)
	}
	return fields, refs
}

func cell(doc string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(doc), " "), "|", `\|`)
}

// kind describes a Go type.
func (t *types) kind(e ast.Expr) (string, []string) {
	switch e := e.(type) {
	case *ast.StarExpr:
		return t.kind(e.X)
	case *ast.ArrayType:
		of, refs := t.kind(e.Elt)
		return "list of " + of, refs
	case *ast.MapType:
		of, refs := t.kind(e.Value)
		return "map of " + of, refs
	case *ast.SelectorExpr:
		switch e.Sel.Name {
		case "Duration":
			return "duration", nil
		case "JSON", "RawMessage":
			return "any", nil
		}
		if t.specs[e.Sel.Name] != nil {
			return t.kind(e.Sel)
		}
		if of, ok := e.X.(*ast.Ident); ok && (of.Name == "corev1" || of.Name == "batchv1") {
			return e.Sel.Name, nil // the name in the documentation of Kubernetes
		}
		return "string", nil
	case *ast.Ident:
		switch {
		case e.Name == "Duration":
			return "duration", nil
		case e.Name == "float64":
			return "number", nil
		case t.specs[e.Name] == nil:
			return e.Name, nil
		case e.Name == "Manifests":
			return "list or text", nil
		default:
			return fmt.Sprintf("[%s](#%s)", e.Name, strings.ToLower(e.Name)), []string{e.Name}
		}
	default:
		return "any", nil
	}
}
