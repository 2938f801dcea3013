package workflow

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// reference is ${tasks.NAME.output} or ${tasks.NAME.output.PATH}; $${ stands for ${ itself.
func reference() *regexp.Regexp {
	return regexp.MustCompile(`\$?\$\{tasks\.([A-Za-z0-9][A-Za-z0-9._/-]*?)\.output((?:\.[A-Za-z0-9_-]+)*)\}`)
}

// References are the tasks whose output is used in the strings of inputs, each once.
func References(with json.RawMessage) ([]string, error) {
	if !strings.Contains(string(with), "${tasks.") {
		return nil, nil
	}
	var names []string
	rest := reference().ReplaceAllStringFunc(string(with), func(m string) string {
		if !strings.HasPrefix(m, "$$") {
			if name := reference().FindStringSubmatch(m)[1]; !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		return ""
	})
	if at := strings.Index(rest, "${tasks."); at >= 0 {
		wrong := rest[at:min(len(rest), at+40)]
		if end := strings.IndexByte(wrong, '}'); end >= 0 {
			wrong = wrong[:end+1]
		}
		return names, fmt.Errorf("%q is no reference to an output", wrong)
	}
	return names, nil
}

// Fill puts outputs into the strings of inputs. A string that is one reference alone becomes the value itself; within
// other text a value that is no string stands as JSON.
func Fill(with json.RawMessage, output func(task string) json.RawMessage) (json.RawMessage, error) {
	if !strings.Contains(string(with), "${tasks.") {
		return with, nil
	}
	var v any
	if err := json.Unmarshal(with, &v); err != nil {
		return nil, fmt.Errorf("reading the inputs: %w", err)
	}
	v, err := fill(v, output)
	if err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

func fill(v any, output func(string) json.RawMessage) (any, error) {
	var err error
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			if v[k], err = fill(v[k], output); err != nil {
				return nil, err
			}
		}
	case []any:
		for i := range v {
			if v[i], err = fill(v[i], output); err != nil {
				return nil, err
			}
		}
	case string:
		return fillString(v, output)
	}
	return v, nil
}

func fillString(s string, output func(string) json.RawMessage) (any, error) {
	if !strings.Contains(s, "${tasks.") {
		return s, nil
	}
	re := reference()
	if m := re.FindStringSubmatch(s); len(m) > 0 && m[0] == s && !strings.HasPrefix(s, "$$") {
		return lookup(m[1], m[2], output)
	}
	var failed error
	filled := re.ReplaceAllStringFunc(s, func(m string) string {
		if strings.HasPrefix(m, "$$") {
			return m[1:]
		}
		parts := re.FindStringSubmatch(m)
		v, err := lookup(parts[1], parts[2], output)
		if err != nil {
			failed = err
			return ""
		}
		if text, ok := v.(string); ok {
			return text
		}
		data, err := json.Marshal(v)
		if err != nil {
			failed = err
		}
		return string(data)
	})
	return filled, failed
}

func lookup(task, path string, output func(string) json.RawMessage) (any, error) {
	data := output(task)
	if data == nil {
		return nil, fmt.Errorf("task %q has recorded no output", task)
	}
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		return nil, fmt.Errorf("reading the output of task %q: %w", task, err)
	}
	for _, key := range strings.Split(path, ".")[1:] {
		switch at := v.(type) {
		case map[string]any:
			next, ok := at[key]
			if !ok {
				return nil, fmt.Errorf("the output of task %q has no %s", task, strings.TrimPrefix(path, "."))
			}
			v = next
		case []any:
			n, err := strconv.Atoi(key)
			if err != nil || n < 0 || n >= len(at) {
				return nil, fmt.Errorf("the output of task %q has no %s", task, strings.TrimPrefix(path, "."))
			}
			v = at[n]
		default:
			return nil, fmt.Errorf("the output of task %q has no %s", task, strings.TrimPrefix(path, "."))
		}
	}
	return v, nil
}
