package export

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"scute.dev/eventlog"
)

// format is the version of the format. Each change of the format needs another version.
const format = "scute.dev/log-export/v1"

// maxLine is the maximum length of a line, which is more than the largest message needs.
const maxLine = 128 << 20

// Head is the first line.
type Head struct {
	Format string `json:"format"`
	LogID  string `json:"logID"`
	// Last is the sequence of the last commit of the log when the export began.
	Last uint64 `json:"last"`
}

// Line is a stored commit.
type Line struct {
	Seq    uint64    `json:"seq"`
	Stored time.Time `json:"stored"`
	// Subject and Header are in base64 if Binary is set, because they are not UTF-8. Commits of scute always are.
	Subject string `json:"subject"`
	// Header contains pairs of a name and a value, sorted by name. Values of the same name are in stored order.
	Header [][2]string `json:"header,omitempty"`
	Binary bool        `json:"binary,omitempty"`
	Data   []byte      `json:"data"`
}

// Writer writes an export.
type Writer struct {
	out     *bufio.Writer
	encoder *json.Encoder
}

// NewWriter returns a Writer, and writes the first line.
func NewWriter(w io.Writer, head Head) (*Writer, error) {
	head.Format = format
	out := bufio.NewWriterSize(w, 256<<10)
	e := &Writer{out, json.NewEncoder(out)}
	e.encoder.SetEscapeHTML(false)
	return e, e.encoder.Encode(head)
}

// Write writes a commit.
func (w *Writer) Write(r eventlog.Record) error {
	if err := w.encoder.Encode(LineOf(r)); err != nil {
		return fmt.Errorf("exporting commit %d: %w", r.Seq, err)
	}
	return nil
}

// LineOf returns the line of a commit.
func LineOf(r eventlog.Record) Line {
	line := Line{Seq: r.Seq, Stored: r.Stored.UTC(), Subject: r.Subject(), Data: r.Data()}
	for _, name := range slices.Sorted(maps.Keys(r.Header())) {
		for _, value := range r.Header()[name] {
			line.Header = append(line.Header, [2]string{name, value})
		}
	}
	line.encode()
	return line
}

// Record returns the commit of a line that Next or Decode returned.
func (l *Line) Record() eventlog.Record {
	header := make(map[string][]string, len(l.Header))
	for _, f := range l.Header {
		header[f[0]] = append(header[f[0]], f[1])
	}
	return eventlog.NewRecord(l.Seq, l.Stored, l.Subject, header, l.Data)
}

// Close flushes the buffer; it does not close the underlying writer.
func (w *Writer) Close() error { return w.out.Flush() }

// encode encodes bytes in base64 that JSON would not keep.
func (l *Line) encode() {
	l.Binary = !utf8.ValidString(l.Subject) || slices.ContainsFunc(l.Header, func(f [2]string) bool { return !utf8.ValidString(f[0]) || !utf8.ValidString(f[1]) })
	if !l.Binary {
		return
	}
	l.Subject = encode(l.Subject)
	for i, f := range l.Header {
		l.Header[i] = [2]string{encode(f[0]), encode(f[1])}
	}
}

// Reader reads an export.
type Reader struct {
	Head       Head
	lines      *bufio.Scanner
	lineNumber int
}

// LineError is the error for a line that is not a commit. The lines after it can be read.
type LineError struct {
	Line int
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns the cause.
func (e *LineError) Unwrap() error { return e.Err }

// NewReader returns a Reader, and reads the first line.
func NewReader(r io.Reader) (*Reader, error) {
	x := &Reader{lines: bufio.NewScanner(r), lineNumber: 1}
	x.lines.Buffer(make([]byte, 0, 256<<10), maxLine)
	if !x.lines.Scan() {
		return nil, fmt.Errorf("reading the export: %w", errors.Join(x.lines.Err(), errors.New("it is empty")))
	}
	if err := json.Unmarshal(x.lines.Bytes(), &x.Head); err != nil {
		return nil, fmt.Errorf("reading the export: its first line: %w", err)
	}
	if x.Head.Format != format {
		return nil, fmt.Errorf("reading the export: its format is %q: this program reads %s", x.Head.Format, format)
	}
	return x, nil
}

// Next returns the next commit, or io.EOF at the end. After a LineError the next line can be read.
func (x *Reader) Next() (Line, error) {
	if !x.lines.Scan() {
		if err := x.lines.Err(); err != nil {
			return Line{}, fmt.Errorf("reading the export after line %d: %w", x.lineNumber, err)
		}
		return Line{}, io.EOF
	}
	x.lineNumber++
	line, err := Decode(x.lines.Bytes())
	if err != nil {
		return Line{}, &LineError{x.lineNumber, err}
	}
	return line, nil
}

// Decode decodes a line.
func Decode(data []byte) (line Line, err error) {
	if err := json.Unmarshal(data, &line); err != nil {
		return Line{}, err
	}
	return line, line.decode()
}

func (l *Line) decode() (err error) {
	if !l.Binary {
		return nil
	}
	l.Subject, err = decode(l.Subject)
	for i, f := range l.Header {
		name, bad := decode(f[0])
		value, worse := decode(f[1])
		err = errors.Join(err, bad, worse)
		l.Header[i] = [2]string{name, value}
	}
	return err
}

func encode(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func decode(s string) (string, error) {
	b, err := base64.StdEncoding.DecodeString(s)
	return string(b), err
}
