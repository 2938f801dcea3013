package workflow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

const maxFilledBytes = 1 << 20

// ErrNoOutput means that inputs refer, without a default, to an output that was not recorded.
var ErrNoOutput = errors.New("has recorded no output, and the reference has no default: write ${tasks.NAME.output.PATH:-DEFAULT}")

// PathError means that inputs refer, without a default, to a path that does not exist in the
// output.
type PathError struct{ Task, Path string }

func (e *PathError) Error() string {
	return fmt.Sprintf("the output of task %q has no %s", e.Task, strings.TrimPrefix(e.Path, "."))
}

// Reference is a reference to an output in the inputs of a step.
type Reference struct {
	// Path is a path into the output of Task, such as ".a.0.b", or "" for the whole output.
	Task, Path string
	// Default is used if HasDefault is set and the output or the path is missing or null.
	Default    string
	HasDefault bool
}

// reference matches ${tasks.NAME.output}, ${tasks.NAME.output.PATH}, and both with :-DEFAULT before
// the }. It also matches $${tasks., which means the literal text ${tasks.
var reference = regexp.MustCompile(`\$?\$\{tasks\.([A-Za-z0-9][A-Za-z0-9._/-]*?)\.output((?:\.[A-Za-z0-9_-]+)*)(?::(-[^}]*))?\}|\$\$\{tasks\.`)

func referenceOf(text string) Reference {
	match := reference.FindStringSubmatch(text)
	return Reference{Task: match[1], Path: match[2], Default: strings.TrimPrefix(match[3], "-"), HasDefault: match[3] != ""}
}

// References returns the distinct references in the strings of inputs.
func References(with json.RawMessage) ([]Reference, error) {
	if !bytes.Contains(with, []byte("${tasks.")) {
		return nil, nil
	}
	var refs []Reference
	seen := make(map[string]bool)
	rest := reference.ReplaceAllStringFunc(string(with), func(m string) string {
		if !strings.HasPrefix(m, "$$") && !seen[m] {
			seen[m] = true
			refs = append(refs, referenceOf(m))
		}
		return ""
	})
	if at := strings.Index(rest, "${tasks."); at >= 0 {
		wrong := rest[at:min(len(rest), at+40)]
		if end := strings.IndexByte(wrong, '}'); end >= 0 {
			wrong = wrong[:end+1]
		}
		return refs, fmt.Errorf("%q is not a valid reference to an output", wrong)
	}
	return refs, nil
}

// ReplaceReferences replaces each reference in a text with the result of by, and $${tasks. with the
// literal ${tasks.
func ReplaceReferences(text string, by func(Reference) string) string {
	return reference.ReplaceAllStringFunc(text, func(m string) string {
		if strings.HasPrefix(m, "$$") {
			return m[1:]
		}
		return by(referenceOf(m))
	})
}

// fieldReference matches a reference in a JSON field name, which is not replaced.
var fieldReference = regexp.MustCompile(`"((?:[^"\\]|\\.)*\$\{tasks\.(?:[^"\\]|\\.)*)"\s*:`)

var errFilled = fmt.Errorf("the inputs have more than %d bytes after outputs are filled in: refer to smaller outputs, or pass a reference to large data",
	maxFilledBytes)

// Fill replaces the references in the strings of inputs. A string that consists of one reference
// becomes the referenced value. Within other text, the value is inserted as JSON. Fill fails before
// it allocates much more than maxFilledBytes.
func Fill(with json.RawMessage, output func(task string) json.RawMessage) (json.RawMessage, error) {
	if !bytes.Contains(with, []byte("${tasks.")) {
		return with, nil
	}
	v, err := decodeJSON(with)
	if err != nil {
		return nil, fmt.Errorf("reading the inputs: %w", err)
	}
	f := &filler{output: output, outputs: make(map[string]any)}
	filled, err := f.fill(v)
	if err != nil {
		return nil, err
	}
	data, err := encodeJSON(filled)
	if err == nil && len(data) > maxFilledBytes {
		return nil, errFilled
	}
	return data, err
}

// filler replaces references, and decodes each output only once.
type filler struct {
	output  func(task string) json.RawMessage
	outputs map[string]any // by task
	size    int            // of the substituted values
}

func (f *filler) fill(v any) (_ any, err error) {
	switch v := v.(type) {
	case map[string]any:
		for key := range v {
			if v[key], err = f.fill(v[key]); err != nil {
				return nil, err
			}
		}
	case []any:
		for i := range v {
			if v[i], err = f.fill(v[i]); err != nil {
				return nil, err
			}
		}
	case string:
		return f.fillString(v)
	}
	return v, nil
}

func (f *filler) fillString(s string) (filled any, err error) {
	text := ReplaceReferences(s, func(ref Reference) string {
		if err != nil {
			return ""
		}
		if filled, err = f.value(ref); err != nil {
			return ""
		}
		text, ok := filled.(string)
		if !ok {
			var data json.RawMessage
			data, err = encodeJSON(filled)
			text = string(data)
		}
		if f.size += len(text); f.size > maxFilledBytes {
			err = errFilled
		}
		return text
	})
	switch {
	case err != nil:
		return nil, err
	case reference.FindString(s) == s && strings.HasPrefix(s, "${"):
		return filled, nil
	default:
		return text, nil
	}
}

func (f *filler) value(ref Reference) (any, error) {
	at, ok := f.outputs[ref.Task]
	if !ok {
		data := f.output(ref.Task)
		if data == nil && ref.HasDefault {
			return ref.Default, nil
		}
		if data == nil {
			return nil, fmt.Errorf("task %q %w", ref.Task, ErrNoOutput)
		}
		var err error
		if at, err = decodeJSON(data); err != nil {
			return nil, fmt.Errorf("reading the output of task %q: %w", ref.Task, err)
		}
		f.outputs[ref.Task] = at
	}
	at, found := lookupPath(at, ref.Path)
	switch {
	case ref.HasDefault && at == nil:
		return ref.Default, nil
	case !found:
		return nil, &PathError{Task: ref.Task, Path: ref.Path}
	}
	return at, nil
}

func lookupPath(v any, path string) (any, bool) {
	for _, key := range strings.Split(path, ".")[1:] {
		switch at := v.(type) {
		case map[string]any:
			next, ok := at[key]
			if !ok {
				return nil, false
			}
			v = next
		case []any:
			n, err := strconv.Atoi(key)
			if err != nil || n < 0 || n >= len(at) {
				return nil, false
			}
			v = at[n]
		default:
			return nil, false
		}
	}
	return v, true
}

// decodeJSON decodes JSON. It keeps numbers as text, because a float64 cannot represent every
// integer.
func decodeJSON(data json.RawMessage) (any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	return v, err
}

// encodeJSON encodes JSON. It does not escape <, > and &, because the result is used inside text.
func encodeJSON(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
