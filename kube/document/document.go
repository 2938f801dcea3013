package document

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"unicode"

	textunicode "golang.org/x/text/encoding/unicode"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Each yields the documents of a YAML or JSON text as JSON. Like kubectl, it reads a text that
// begins with { as JSON, and as YAML from the first document that is not JSON. An error ends the
// iteration. It yields [ErrMultipleDocuments] and [KeyError] where kubectl silently drops a
// document or changes a key.
func Each(text []byte) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		text := ToUTF8(text)
		if len(text) > MaxSize {
			yield(nil, errSize)
			return
		}
		values, limit := 0, maxValuesFor(text)
		one := func(document json.RawMessage, n int, err error) bool {
			if values += n; err == nil && values > limit {
				err = errValues
			}
			return yield(document, err) && err == nil
		}
		if utilyaml.IsJSONBuffer(text) {
			objects, begin := json.NewDecoder(bytes.NewReader(text)), int64(0)
			for i := 0; ; i++ {
				var raw json.RawMessage
				err := objects.Decode(&raw)
				switch {
				case errors.Is(err, io.EOF):
					return
				case err != nil && i > 1: // after two JSON objects, kubectl reads no YAML
					yield(nil, err)
					return
				}
				if err != nil {
					rest, ok := skipBlankLine(text[begin:])
					if !ok {
						yield(nil, err)
						return
					}
					text = rest
					break
				}
				n, err := countJSONValues(raw)
				if !one(raw, n, err) {
					return
				}
				begin = objects.InputOffset()
			}
		}
		for documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
			document, err := documents.Read()
			if errors.Is(err, io.EOF) {
				return
			}
			var raw []byte
			n := 0
			if err == nil {
				n, err = decode(document, func() (err error) {
					raw, err = yaml.YAMLToJSON(document)
					return err
				})
			}
			if !one(raw, n, err) {
				return
			}
		}
	}
}

// skipBlankLine removes the leading white space up to the end of the line. ok is false if less than
// four bytes remain, from which kubectl's decoder reads no YAML.
func skipBlankLine(text []byte) (rest []byte, ok bool) {
	const enough = 4
	left := bytes.TrimLeftFunc(text, unicode.IsSpace)
	if i := bytes.IndexByte(text[:len(text)-len(left)], '\n'); i >= 0 {
		return text[i+1:], len(text)-i >= enough
	}
	return left, len(left) >= enough
}

// ToUTF8 returns a text in UTF-8. A text in UTF-16 begins with a byte order mark.
func ToUTF8(text []byte) []byte {
	if !isUTF16(text) {
		return text
	}
	decoded, err := textunicode.UTF16(textunicode.BigEndian, textunicode.UseBOM).NewDecoder().Bytes(text)
	if err != nil { // never: the decoder replaces invalid characters
		return text
	}
	return decoded
}

// IsOwnError reports whether an error is from this package. Such an error has a remedy and quotes
// nothing of the text, which may be secret.
func IsOwnError(err error) bool { return errors.Is(err, ErrTooLarge) || losesContent(err) }

// Check returns [ErrMultipleDocuments] or a [KeyError] if decoding would lose a part of a document.
// It returns nil if the document cannot be parsed.
func Check(document []byte) error {
	if _, err := decode(document, nil); losesContent(err) {
		return err
	}
	return nil
}

// Unmarshal decodes the first document of a text as [yaml.Unmarshal] does.
func Unmarshal(text []byte, into any) error {
	text = ToUTF8(text)
	var failed error
	_, err := decode(text, func() error {
		failed = yaml.Unmarshal(text, into)
		return failed
	})
	if losesContent(err) {
		return failed
	}
	return err
}

// CheckBounds returns [ErrTooLarge] if a text would use too much memory in a library that decodes
// its first document, or all of them. It returns nil if the text cannot be parsed, because the
// library fails too.
func CheckBounds(text []byte) error {
	_, err := decode(text, nil)
	if errors.Is(err, ErrTooLarge) {
		return err
	}
	values, limit := 0, maxValuesFor(text)
	for documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
		document, err := documents.Read()
		if err != nil {
			return nil //nolint:nilerr // the end, or a document that the library cannot parse either
		}
		if len(document) == len(text) { // the only document
			return nil
		}
		n, err := decode(document, nil)
		if errors.Is(err, ErrTooLarge) {
			return err
		}
		if values += n; values > limit {
			return errValues
		}
	}
}

// CheckJSON returns [ErrTooLarge] if a JSON text would use too much memory. The text need not be
// valid.
func CheckJSON(text []byte) error {
	n, err := countJSONValues(text)
	if err == nil && n > maxValuesFor(text) {
		err = errValues
	}
	return err
}
