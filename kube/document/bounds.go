package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	goyaml "go.yaml.in/yaml/v2"
	goyaml3 "go.yaml.in/yaml/v3"
)

const (
	// Size bounds a text, in bytes.
	Size = 16 << 20
	// mostValues bounds the values of a text: strings, numbers, lists and objects. A large text may have one value for every
	// bytesPerValue bytes. A CustomResourceDefinition has one for every 40 bytes.
	mostValues, bytesPerValue = 100_000, 20
	// mostDepth bounds how deep lists and objects are nested.
	mostDepth = 500
	// mostGrowth is how many bytes aliases may add to a document.
	mostGrowth = 1 << 20
	// mostMarks bounds the marks of YAML in a document: the characters that marks counts. Each may begin a value, for which the parser
	// needs up to 800 bytes before values can be counted. Commas and lines inside strings are marks without a value.
	mostMarks = 250_000
	// mostDirectives bounds the %TAG directives of a document. The parser compares each with all others.
	mostDirectives = 100
)

// ErrTooLarge is wrapped by the error for a text that would use too much memory.
var ErrTooLarge = errors.New("too large")

// ErrAnother is the error for a document with another one behind it, which the parser would not read.
var ErrAnother = errors.New("another document follows in it: begin each with a separate line that has nothing but ---")

// KeyError is the error for keys that are not text.
type KeyError struct {
	// Paths of the first objects that have them, such as "data" or "spec.tasks.0".
	Paths []string
}

// Error names the objects.
func (e *KeyError) Error() string {
	return fmt.Sprintf("a key of %s is read as true, false or a number (such as on, y, n, 1.10 and 010), which changes it: put it in quotes", strings.Join(e.Paths, " and of "))
}

var (
	errSize       = fmt.Errorf("%w: it has more than %d MiB: split it", ErrTooLarge, Size>>20)
	errValues     = fmt.Errorf("%w: it has more than %d values, and more than one for every %d bytes: split it", ErrTooLarge, mostValues, bytesPerValue)
	errDepth      = fmt.Errorf("%w: its lists and objects are nested more than %d deep: make it flatter", ErrTooLarge, mostDepth)
	errGrowth     = fmt.Errorf("%w: its aliases (*NAME) add more than %d MiB to it: write fewer of them, or less behind their anchors (&NAME)", ErrTooLarge, mostGrowth>>20)
	errMarks      = fmt.Errorf("%w: a document has more than %d lines, commas, colons, dashes and brackets: split it", ErrTooLarge, mostMarks)
	errUTF16      = fmt.Errorf("%w: it is in UTF-16, of which the size cannot be told: save it as UTF-8", ErrTooLarge)
	errDirectives = fmt.Errorf("%w: a document has more than %d %%TAG directives: remove them", ErrTooLarge, mostDirectives)
)

// To bound the memory of all parsers together, only some documents are parsed at a time. Large ones have a separate queue, so that they do
// not delay the usual ones.
const (
	small = 2_000  // marks up to which a document is parsed at once
	usual = 25_000 // marks up to which a document does not wait for large ones
)

var (
	usualTurn = make(chan struct{}, 8)
	largeTurn = make(chan struct{}, 1)
)

func allowed(text []byte) int { return max(mostValues, len(text)/bytesPerValue) }

// decode calls do if the first document of a text is within the bounds, and returns the number of its values. A KeyError and ErrAnother do not keep it
// from calling do.
func decode(text []byte, do func() error) (values int, err error) {
	if len(text) > Size {
		return 0, errSize
	}
	n := marks(text)
	switch turn := usualTurn; {
	case inUTF16(text): // what is looked for below is not found in it
		return 0, errUTF16
	case n > mostMarks:
		return 0, errMarks
	case bytes.Count(text, []byte("%TAG")) > mostDirectives:
		return 0, errDirectives
	case n > small:
		if n > usual {
			turn = largeTurn
		}
		turn <- struct{}{}
		defer func() { <-turn }()
	}
	values, err = measured(text)
	if do != nil && (err == nil || losing(err)) {
		err = errors.Join(err, do())
	}
	return values, err
}

// measured returns how many values the first document of a text has with its aliases expanded. goyaml decodes it as it will be decoded later.
// That copies the lists and objects that aliases refer to, so expansion counts these before.
func measured(text []byte) (values int, err error) {
	if bytes.IndexByte(text, '*') >= 0 && bytes.IndexByte(text, '&') >= 0 {
		var node goyaml3.Node
		if goyaml3.Unmarshal(text, &node) == nil { // otherwise goyaml returns an error below
			values, err := (&expansion{all: make(map[*goyaml3.Node]int), limit: allowed(text)}).of(&node)
			if err != nil {
				return values, err
			}
		}
	}
	var v any
	documents := goyaml.NewDecoder(bytes.NewReader(text))
	if err := documents.Decode(&v); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	m := &measure{}
	m.add(v, 1)
	switch {
	case m.depth > mostDepth:
		return 0, errDepth
	case m.values > allowed(text):
		return 0, errValues
	case m.bytes > 2*len(text)+mostGrowth: // twice, because a decoded escape sequence may be longer
		return 0, errGrowth
	}
	switch {
	case m.changed:
		err = &KeyError{changedKeys(v)}
	case m.numbered:
		if key := changedNumber(text); key != "" {
			err = &KeyError{[]string{"the document (" + key + ")"}}
		}
	}
	if !errors.Is(documents.Decode(new(struct{})), io.EOF) {
		err = errors.Join(err, ErrAnother)
	}
	return m.values, err
}

// losing says whether an error is of a document that a decoder would read, and of which it would lose something.
func losing(err error) bool {
	var keys *KeyError
	return errors.Is(err, ErrAnother) || errors.As(err, &keys)
}

func inUTF16(text []byte) bool {
	return bytes.HasPrefix(text, []byte{0xfe, 0xff}) || bytes.HasPrefix(text, []byte{0xff, 0xfe})
}

// changesKey says whether a key becomes another text when it is converted to JSON.
func changesKey(key any) bool {
	switch key.(type) {
	case bool, float64:
		return true
	default:
		return false
	}
}

// changedNumber returns an integer that is a key, and that is written in another way than it becomes, such as 0755 and 1_000; "" for none.
func changedNumber(text []byte) (found string) {
	var document goyaml3.Node
	if goyaml3.Unmarshal(text, &document) != nil {
		return ""
	}
	var look func(node *goyaml3.Node)
	look = func(node *goyaml3.Node) {
		for i, child := range node.Content {
			if found != "" {
				return
			}
			look(child)
			if node.Kind != goyaml3.MappingNode || i%2 == 1 || child.Kind != goyaml3.ScalarNode || child.Style != 0 || len(child.Value) > namedKey {
				continue
			}
			var number any
			if goyaml.Unmarshal([]byte(child.Value), &number) != nil {
				continue
			}
			if n, is := number.(int); is && strconv.Itoa(n) != child.Value {
				found = child.Value
			}
		}
	}
	look(&document)
	return found
}

// namedPaths and namedKey bound the error about keys: the paths in it, and the bytes of each key.
const namedPaths, namedKey = 10, 63

// changedKeys returns the paths of the first objects that have a key that conversion to JSON changes.
func changedKeys(v any) (paths []string) {
	var at []any
	var look func(v any)
	inside := func(name, v any) {
		at = append(at, name)
		look(v)
		at = at[:len(at)-1]
	}
	look = func(v any) {
		if len(paths) == namedPaths {
			return
		}
		switch v := v.(type) {
		case []any:
			for i := range v {
				inside(i, v[i])
			}
		case map[any]any:
			for key := range v {
				if changesKey(key) {
					paths = append(paths, pathOf(at))
					break
				}
			}
			for key, item := range v {
				inside(key, item)
			}
		}
	}
	look(v)
	slices.Sort(paths)
	return paths
}

func pathOf(at []any) string {
	if len(at) == 0 {
		return "the document"
	}
	var names []string
	for _, name := range at[:min(len(at), namedPaths)] {
		text := fmt.Sprint(name)
		names = append(names, text[:min(len(text), namedKey)])
	}
	return strings.Join(names, ".")
}

// expansion counts the values of nodes with their aliases expanded, without expanding them.
type expansion struct {
	all   map[*goyaml3.Node]int // by node with an anchor
	limit int
}

func (e *expansion) of(node *goyaml3.Node) (values int, err error) {
	if node.Kind == goyaml3.AliasNode {
		return e.all[node.Alias], nil // 0 for an alias within its own anchor, which goyaml refuses later
	}
	if values = 1; node.Kind == goyaml3.DocumentNode {
		values = 0
	}
	for i, child := range node.Content {
		n, err := e.of(child)
		if err != nil {
			return values, err
		}
		if node.Kind != goyaml3.MappingNode || i%2 == 1 || child.Kind == goyaml3.AliasNode { // a plain key is not a value
			values += n
		}
		if values > e.limit {
			return values, errValues
		}
	}
	if node.Anchor != "" {
		e.all[node] = values
	}
	return values, nil
}

type measure struct {
	values, bytes, depth int
	changed              bool // a key becomes another text
	numbered             bool // a key is an integer, whose text may change
}

func (m *measure) add(v any, depth int) {
	m.values++
	if m.depth = max(m.depth, depth); m.depth > mostDepth {
		return
	}
	switch v := v.(type) {
	case string:
		m.bytes += len(v)
	case []any:
		for _, item := range v {
			m.add(item, depth+1)
		}
	case map[any]any:
		for key, item := range v {
			if text, ok := key.(string); ok {
				m.bytes += len(text)
			}
			m.changed = m.changed || changesKey(key)
			if _, is := key.(int); is {
				m.numbered = true
			}
			m.add(item, depth+1)
		}
	}
}

// marks returns an upper bound, up to a small factor, of the number of values in a YAML text.
func marks(text []byte) (n int) {
	for i, b := range text {
		switch b {
		case '\n', '\r', ',', '[', '{':
			n++
		case '-', ':', '?': // before white space, which may be a character of several bytes
			if i+1 == len(text) || text[i+1] <= ' ' || text[i+1] >= 0x80 {
				n++
			}
		}
	}
	return n
}

// count returns the number of values in a JSON text, or an error if they are nested too deep.
func count(text []byte) (values int, err error) {
	depth, quoted, escaped := 0, false, false
	values = 1
	for _, b := range text {
		switch {
		case escaped:
			escaped = false
		case b == '"':
			quoted = !quoted
		case quoted:
			escaped = b == '\\'
		case b == ',':
			values++
		case b == '[' || b == '{':
			values++
			if depth++; depth > mostDepth {
				return values, errDepth
			}
		case b == ']' || b == '}':
			depth--
		}
	}
	return values, nil
}
