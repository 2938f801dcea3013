package eventlog

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// subjectPrefix is the prefix of every subject of the log; two tokens follow it, the kind and the escaped id.
const subjectPrefix = "scute.log."

// maxID bounds the bytes of an escaped id, far below the server's limit for a protocol line (4 KiB).
const maxID = 1024

const lowerHex = "0123456789abcdef"

// Subject returns the subject of the aggregate: scute.log.<kind>.<escaped id>.
//
// It keeps letters, digits and '-', and writes every other byte as '_' and two lower-case hex
// digits. The escape is therefore injective, can be reversed by parseSubject, and contains no
// character with a meaning in NATS.
func (a Aggregate) Subject() string {
	return subjectPrefix + string(a.Kind) + "." + escapeID(a.ID)
}

// String returns "<kind>/<id>".
func (a Aggregate) String() string { return string(a.Kind) + "/" + a.ID }

func (a Aggregate) validate() error {
	switch {
	case !validKind(string(a.Kind)):
		return fmt.Errorf("aggregate %q: the kind must be lower-case letters", a)
	case a.ID == "":
		return fmt.Errorf("aggregate %q: the id is empty", a)
	case !utf8.ValidString(a.ID):
		return fmt.Errorf("aggregate %q: the id is not UTF-8", a)
	case len(escapeID(a.ID)) > maxID:
		return fmt.Errorf("aggregate of kind %s: the id takes %d bytes when escaped, the limit is %d", a.Kind, len(escapeID(a.ID)), maxID)
	}
	return nil
}

// parseSubject parses a result of Aggregate.Subject, and refuses any other string.
func parseSubject(s string) (Aggregate, error) {
	rest, ok := strings.CutPrefix(s, subjectPrefix)
	kind, escaped, dot := strings.Cut(rest, ".")
	if !ok || !dot || !validKind(kind) {
		return Aggregate{}, fmt.Errorf("subject %q is not %s<kind>.<id>", s, subjectPrefix)
	}
	id, err := unescapeID(escaped)
	if err != nil {
		return Aggregate{}, fmt.Errorf("subject %q: %w", s, err)
	}
	return Aggregate{Kind: Kind(kind), ID: id}, nil
}

func validKind(s string) bool {
	for i := range len(s) {
		if s[i] < 'a' || s[i] > 'z' {
			return false
		}
	}
	return s != ""
}

func isUnescaped(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-'
}

func escapeID(id string) string {
	var b strings.Builder
	for i := range len(id) {
		if c := id[i]; isUnescaped(c) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "_%02x", c)
		}
	}
	return b.String()
}

func unescapeID(s string) (string, error) {
	if s == "" {
		return "", errors.New("the id is empty")
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case isUnescaped(c):
			out = append(out, c)
		case c == '_' && i+2 < len(s):
			hi, lo := strings.IndexByte(lowerHex, s[i+1]), strings.IndexByte(lowerHex, s[i+2])
			if hi < 0 || lo < 0 || isUnescaped(byte(hi<<4|lo)) {
				return "", fmt.Errorf("%q is not an escape", s[i:i+3])
			}
			out = append(out, byte(hi<<4|lo))
			i += 2
		default:
			return "", fmt.Errorf("%q is not allowed in an escaped id", s[i:])
		}
	}
	if !utf8.Valid(out) {
		return "", errors.New("the id is not UTF-8")
	}
	return string(out), nil
}
