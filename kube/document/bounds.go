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
	// MaxSize is the largest text that is decoded, in bytes.
	MaxSize = 16 << 20
	// maxValues bounds the strings, numbers, lists and objects of a text. A large text may have one
	// for every bytesPerValue bytes; a CustomResourceDefinition has one for every 40 bytes.
	maxValues, bytesPerValue = 100_000, 20
	maxDepth                 = 500
	// maxAliasGrowth is how many bytes aliases may add to a document.
	maxAliasGrowth = 1 << 20
	// maxDelimiters bounds countDelimiters, because the parser needs up to 800 bytes for a value
	// before values can be counted. Commas and line breaks inside strings count too.
	maxDelimiters = 250_000
	// maxDirectives bounds the %TAG directives of a document. The parser compares each with all
	// others.
	maxDirectives = 100
)

// ErrTooLarge is wrapped by the error for a text that would use too much memory.
var ErrTooLarge = errors.New("too large")

// ErrMultipleDocuments is the error for a document that is followed by a second one, which the
// parser would ignore.
var ErrMultipleDocuments = errors.New("another document follows: separate documents by a line that contains only ---")

// KeyError is the error for keys that YAML reads as booleans or numbers instead of strings.
type KeyError struct {
	// Paths are the first objects with such keys, for example "data" or "spec.tasks.0".
	Paths []string
}

func (e *KeyError) Error() string {
	return fmt.Sprintf("YAML reads a key of %s as true, false or a number (such as on, y, n, 1.10 and 010): put the key in quotes", strings.Join(e.Paths,
		" and of "))
}

var (
	errSize       = fmt.Errorf("%w: it has more than %d MiB: split it", ErrTooLarge, MaxSize>>20)
	errValues     = fmt.Errorf("%w: it has more than %d values, and more than one for every %d bytes: split it", ErrTooLarge, maxValues, bytesPerValue)
	errDepth      = fmt.Errorf("%w: its lists and objects are nested more than %d deep: make it flatter", ErrTooLarge, maxDepth)
	errGrowth     = fmt.Errorf("%w: its aliases (*NAME) add more than %d MiB to it: write fewer of them, or less behind their anchors (&NAME)", ErrTooLarge, maxAliasGrowth>>20)
	errDelimiters = fmt.Errorf("%w: a document has more than %d lines, commas, colons, dashes and brackets: split it", ErrTooLarge, maxDelimiters)
	errAliases    = fmt.Errorf("%w: its aliases (*NAME) cannot be counted: correct its syntax, or write no aliases", ErrTooLarge)
	errUTF16      = fmt.Errorf("%w: it is in UTF-16, whose size cannot be estimated: save it as UTF-8", ErrTooLarge)
	errDirectives = fmt.Errorf("%w: a document has more than %d %%TAG directives: remove them", ErrTooLarge, maxDirectives)
)

// Few documents are parsed at a time, to bound the memory of all parsers. Large documents, and
// those with aliases, have a separate queue, so that they do not delay usual ones.
const (
	smallDocument = 2_000  // up to this number of delimiters, a document is parsed without waiting
	usualDocument = 25_000 // up to this number of delimiters, a document does not wait for large ones
)

var (
	usualSlots = make(chan struct{}, 8)
	largeSlots = make(chan struct{}, 1)
)

func maxValuesFor(text []byte) int { return max(maxValues, len(text)/bytesPerValue) }

// decode calls do if the first document is within the bounds, also after a KeyError or
// ErrMultipleDocuments. It returns the number of its values.
func decode(text []byte, do func() error) (values int, err error) {
	if len(text) > MaxSize {
		return 0, errSize
	}
	n, aliases := countDelimiters(text), hasAliases(text)
	switch turn := usualSlots; {
	case isUTF16(text): // the checks below work on UTF-8
		return 0, errUTF16
	case n > maxDelimiters:
		return 0, errDelimiters
	case bytes.Count(text, []byte("%TAG")) > maxDirectives:
		return 0, errDirectives
	case n > smallDocument || aliases:
		if n > usualDocument || aliases {
			turn = largeSlots
		}
		turn <- struct{}{}
		defer func() { <-turn }()
	}
	values, err = countExpanded(text)
	if do != nil && (err == nil || losesContent(err)) {
		err = errors.Join(err, do())
	}
	return values, err
}

// countExpanded returns the number of values in the first document, with aliases expanded. It uses
// the same decoder as the later decoding.
func countExpanded(text []byte) (values int, err error) {
	if hasAliases(text) {
		if err := checkAliases(text); err != nil {
			return 0, err
		}
	}
	var v any
	documents := goyaml.NewDecoder(bytes.NewReader(text))
	if err := documents.Decode(&v); err != nil && !errors.Is(err, io.EOF) {
		if strings.Contains(err.Error(), "excessive aliasing") {
			err = errGrowth
		}
		return 0, err
	}
	m := &measure{maxValues: maxValuesFor(text)}
	m.add(v)
	switch {
	case m.depth > maxDepth:
		return 0, errDepth
	case m.values > m.maxValues:
		return 0, errValues
	case m.bytes > 2*len(text)+maxAliasGrowth: // twice, because a decoded escape sequence may be longer
		return 0, errGrowth
	}
	if m.integerKey {
		if number := changedNumber(text); number != "" {
			m.changed = append(m.changed, "the document ("+number+")")
		}
	}
	if len(m.changed) > 0 {
		slices.Sort(m.changed)
		err = &KeyError{m.changed}
	}
	if !errors.Is(documents.Decode(new(int)), io.EOF) { // an int decodes no aliases
		err = errors.Join(err, ErrMultipleDocuments)
	}
	return m.values, err
}

// checkAliases returns errGrowth if aliases add too much to the first document. It decodes no
// alias, because goyaml parses a number, and copies a !!binary value, again for each alias.
func checkAliases(text []byte) error {
	var document goyaml3.Node
	if goyaml3.Unmarshal(text, &document) != nil {
		err := goyaml.Unmarshal(text, new(int))
		if errors.As(err, new(*goyaml.TypeError)) { // goyaml can parse it
			return errAliases
		}
		return err
	}
	const perValue, most = 10, 1 << 40
	anchors, own := make(map[*goyaml3.Node]int), 0
	var expanded func(*goyaml3.Node) int
	expanded = func(node *goyaml3.Node) int {
		if node.Kind == goyaml3.AliasNode {
			return anchors[node.Alias] // 0 for an alias within its own anchor, which goyaml refuses later
		}
		size := len(node.Value) + perValue
		own += size
		for _, child := range node.Content {
			size += expanded(child)
		}
		size = min(size, most)
		if node.Anchor != "" {
			anchors[node] = size
		}
		return size
	}
	if size := expanded(&document); size-own > maxAliasGrowth {
		return errGrowth
	}
	return nil
}

// changedNumber returns an integer key that JSON would spell differently, such as 0755 or 1_000, or
// "".
func changedNumber(text []byte) string {
	var document goyaml3.Node
	if goyaml3.Unmarshal(text, &document) != nil {
		return ""
	}
	nodes := []*goyaml3.Node{&document}
	for len(nodes) > 0 {
		node := nodes[0]
		nodes = append(nodes[1:], node.Content...)
		for i := 0; node.Kind == goyaml3.MappingNode && i < len(node.Content); i += 2 {
			key := node.Content[i]
			var number any
			if key.Kind != goyaml3.ScalarNode || key.Style != 0 || len(key.Value) > maxNamedKeyBytes ||
				goyaml.Unmarshal([]byte(key.Value), &number) != nil {
				continue
			}
			if n, is := number.(int); is && strconv.Itoa(n) != key.Value {
				return key.Value
			}
		}
	}
	return ""
}

// losesContent reports whether a decoder would accept the document but drop or change a part of it.
func losesContent(err error) bool {
	return errors.Is(err, ErrMultipleDocuments) || errors.As(err, new(*KeyError))
}

func hasAliases(text []byte) bool {
	return bytes.IndexByte(text, '*') >= 0 && bytes.IndexByte(text, '&') >= 0
}

func isUTF16(text []byte) bool {
	return bytes.HasPrefix(text, []byte{0xfe, 0xff}) || bytes.HasPrefix(text, []byte{0xff, 0xfe})
}

// These bound a KeyError: the number of its paths, and the bytes of each key.
const maxNamedPaths, maxNamedKeyBytes = 10, 63

type measure struct {
	maxValues            int
	values, bytes, depth int
	at                   []any    // keys and indexes that lead to the current value
	changed              []string // paths of the first objects with a key that JSON changes
	integerKey           bool     // a key is an integer, whose text may change
}

func (m *measure) add(v any) {
	m.values++
	if m.depth = max(m.depth, len(m.at)+1); m.depth > maxDepth || m.values > m.maxValues {
		return
	}
	inside := func(name, v any) {
		m.at = append(m.at, name)
		m.add(v)
		m.at = m.at[:len(m.at)-1]
	}
	switch v := v.(type) {
	case string:
		m.bytes += len(v)
	case []any:
		for i, item := range v {
			inside(i, item)
		}
	case map[any]any:
		changed := false
		for key, item := range v {
			switch key := key.(type) {
			case string:
				m.bytes += len(key)
			case int:
				m.integerKey = true
			case bool, float64:
				changed = true
			}
			inside(key, item)
		}
		if changed && len(m.changed) < maxNamedPaths {
			m.changed = append(m.changed, m.path())
		}
	}
}

func (m *measure) path() string {
	if len(m.at) == 0 {
		return "the document"
	}
	var names []string
	for _, name := range m.at[:min(len(m.at), maxNamedPaths)] {
		text := fmt.Sprint(name)
		names = append(names, text[:min(len(text), maxNamedKeyBytes)])
	}
	return strings.Join(names, ".")
}

// countDelimiters returns an upper bound, up to a small factor, of the number of values in a YAML
// text.
func countDelimiters(text []byte) (n int) {
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

func countJSONValues(text []byte) (values int, err error) {
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
			if depth++; depth > maxDepth {
				return values, errDepth
			}
		case b == ']' || b == '}':
			depth--
		}
	}
	return values, nil
}
