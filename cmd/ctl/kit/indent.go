package kit

import (
	"bytes"
	"encoding/json"
)

// maxSpaces limits the spaces that indentation may add.
const maxSpaces = 1 << 20

// Indent indents JSON. It returns data unchanged if the data is not JSON, or if the JSON is so
// deeply nested that indentation would make it grow quadratically.
func Indent(raw []byte) string {
	var out bytes.Buffer
	if spaces(raw) > maxSpaces || json.Indent(&out, raw, "", "  ") != nil {
		return string(raw)
	}
	return out.String()
}

func spaces(raw []byte) (n int) {
	depth, quoted := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			depth++
			n += 2 * depth
		case c == ',':
			n += 2 * depth
		case c == ']' || c == '}':
			depth--
			n += 2 * depth
		}
	}
	return n
}
